"""Measures what quantization saves: the same random model held in bfloat16, 8 bits and 4 bits.

    python -m rlvr_exp.models.quantization_size [--hidden 1024] [--layers 12] [--vocabulary 8192]

The defaults make a Qwen3 of 197 million parameters, 96% of them in linear layers, which are what is quantized. A model
whose embeddings weigh more, such as the embedded model, saves less.
"""

import argparse
import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from rlvr_exp.config.model import Model
from rlvr_exp.models.policy import load_network
from rlvr_exp.models.quantization import weight_bytes

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


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_exp.models.quantization_size", description=__doc__.splitlines()[0]
    )
    for name, default in (("hidden", 1024), ("layers", 12), ("vocabulary", 8192)):
        parser.add_argument(f"--{name}", type=int, default=default)
    with TemporaryDirectory() as folder:
        random_model(Path(folder), **vars(parser.parse_args(arguments)))
        held = measure_sizes(Path(folder))
    for bits, size in held.items():
        name = "bfloat16" if bits == "none" else bits
        print(f"{name:<9} {size / 2**20:9.1f} MiB  {size / held['none']:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
