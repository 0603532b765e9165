"""What the files of a checkpoint say without its weights being loaded: size, context, stored type, chat template, and the
options of the run of ours that trained it. A file that cannot be read says nothing here; what loads it reports it."""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.architecture import Architecture, read_architecture
from rlvr_exp.config.chat_template import has_template
from rlvr_exp.config.checkpoint_files import context_of
from rlvr_exp.core.files import json_of
from rlvr_exp.core.sealed import NAME, marks

LAYERS, HIDDEN = ("num_hidden_layers", "n_layer", "n_layers"), ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
"""Keys of a public config.json, by family."""
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
MOST_HEADER = 2**27
"""A longer header of a safetensors file is none."""


@dataclass(frozen=True)
class CheckpointFacts:
    """Zero and empty: unknown."""

    parameters: int = 0
    context: int = 0
    """Tokens of the longest prompt with its completion."""
    cached: int = 0
    """Numbers that one token takes in the cache of keys and values."""
    stored: str = ""
    """Type of the weights on disk."""
    chat_template: bool = False
    run: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run of ours that wrote it, by their dotted paths; empty for a checkpoint of others."""


def read_facts(weights: Path, tokenizer: Path, trained: Path) -> CheckpointFacts:
    """
    Args:
        weights: folder of the model below any adapter; its config.json is enough.
        tokenizer: folder of its tokenizer.
        trained: folder of the checkpoint, an adapter's too: of ours it records its run.
    """
    values = json_of(weights / "config.json") or {}
    values = {**values, **values["text_config"]} if isinstance(values.get("text_config"), dict) else values
    stored = str(values.get("dtype") or values.get("torch_dtype") or "").removeprefix("torch.")
    layers, hidden, heads = (_first(values, names) for names in (LAYERS, HIDDEN, HEADS))
    keys = _first(values, ("num_key_value_heads",)) or heads
    width = _first(values, ("head_dim",)) or (hidden // heads if heads else 0)
    return CheckpointFacts(
        _shape(weights).parameters or _parameters(weights, BYTES.get(stored, 2)),
        context_of(values),
        2 * layers * keys * width,
        stored,
        has_template(tokenizer),
        _run(trained),
    )


def _shape(folder: Path) -> Architecture:
    """Unknown for a family without a shape and a file that cannot be read."""
    try:
        return read_architecture(folder)[0]
    except (OSError, ValueError, KeyError, TypeError):
        return Architecture()


def _run(folder: Path) -> Mapping[str, Any]:
    """The options in the manifest of a checkpoint of ours, or of that whose role's folder this is."""
    folder = folder.resolve()
    sealed = next((place for place in (folder, folder.parent) if marks(place) > 1), None)
    options = (json_of(sealed / NAME) or {}).get("config") if sealed else None
    return options if isinstance(options, dict) else {}


def _first(values: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((value for name in names if isinstance(value := values.get(name), int) and value > 0), 0)


def _parameters(folder: Path, width: int) -> int:
    """From the headers of safetensors files; else from the size of the weights, at `width` bytes a number."""
    files = sorted(folder.glob("*.safetensors"))
    try:
        if files:
            return sum(map(_numbers, files))
    except (OSError, ValueError, KeyError, TypeError, struct.error):  # Damaged: reported where it is loaded.
        pass
    files = files or sorted(folder.glob("pytorch_model*.bin"))
    return sum(path.stat().st_size for path in files if path.is_file()) // width


def _numbers(file: Path) -> int:
    """Numbers in a safetensors file: 8 bytes with the length of a header in JSON, the header, the numbers."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(min(length, MOST_HEADER)))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
