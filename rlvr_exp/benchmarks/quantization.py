"""`benchmark=quantization`: the same random model held in bfloat16, 8 bits and 4 bits.

The defaults make a Qwen3 of 197 million parameters, 96% of them in linear layers, which are what is quantized. A model
whose embeddings weigh more, such as the embedded model, saves less.
"""

import gc
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.models.policy import load_network
from rlvr_exp.models.quantization import weight_bytes
from rlvr_exp.records.context import RunContext

BITS = ("none", "8bit", "4bit")


def random_model(folder: Path, hidden: int, layers: int, vocabulary: int) -> None:
    """Write a Qwen3 with random weights in bfloat16; heads of 128, feed-forward of three times the width."""
    shape = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 128,
        tie_word_embeddings=True,
    )
    AutoModelForCausalLM.from_config(shape, dtype=torch.bfloat16).save_pretrained(folder)


def measure_sizes(folder: Path) -> Mapping[str, int]:
    """Bytes of the weights at `folder` in each number of bits; on a GPU counted by its allocator."""
    return {bits: _held(Model(path=str(folder), dtype="bfloat16", quantization=bits)) for bits in BITS}


def _held(model: Model) -> int:
    gc.collect()
    before = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
    network = load_network(model, seed=0)
    return torch.cuda.memory_allocated() - before if torch.cuda.is_available() else weight_bytes(network)


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The bytes of the model in each number of bits, and their share of those in bfloat16."""
    options = config.benchmark
    with TemporaryDirectory() as folder:
        random_model(Path(folder), options.hidden, options.layers, options.vocabulary)
        held = measure_sizes(Path(folder))
    names = {bits: "bfloat16" if bits == "none" else bits for bits in held}
    lines = (f"{names[bits]:<9} {size / 2**20:9.1f} MiB  {size / held['none']:.3f}" for bits, size in held.items())
    return "\n".join(lines), {f"bytes/{names[bits]}": size for bits, size in held.items()}
