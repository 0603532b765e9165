"""Files of a checkpoint without weights."""

import json
import struct
from pathlib import Path


def checkpoint(folder: Path, parameters: int = 2_000_000, context: int = 2048, template: bool = True, **more) -> Path:
    """The files of a checkpoint as far as settings follow from them: the header of its weights, and no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": context}
    (folder / "config.json").write_text(
        json.dumps({"model_type": "gpt_neox", "torch_dtype": "float16", **shape, **more})
    )
    header = json.dumps({"w": {"dtype": "F16", "shape": [parameters], "data_offsets": [0, 2 * parameters]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": "{{ messages[-1].content }}"} if template else {})
    )
    return folder
