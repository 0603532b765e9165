"""The embedded policies: where they are stored and how their files are built.

    python -m rlvr_exp.models.embedded prepare NAME          tokenizer and architecture, from the embedded train split
    python -m rlvr_exp +stage=sft +experiment=...            trains it (docs/tiny_model.md, docs/dafny_corpus.md)
    python -m rlvr_exp.models.embedded embed NAME CHECKPOINT  its weights, as bfloat16 in files below 2 MB

NAME is `tiny` (grid puzzles) or `tiny_dafny` (bodies of Dafny methods to write and to annotate).
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import rlvr_exp
from rlvr_exp.tasks.base import Domain

MODELS = Path(rlvr_exp.__file__).parent / "assets" / "models"
EMBEDDED = MODELS / "tiny"
SHARD = "1900KB"


def embedded_folder(name: str) -> Path:
    """Folder of the embedded model of that name."""
    return MODELS / name


def prepare(name: str, target: Path) -> None:
    """Write tokenizer and architecture. The same corpus gives the same files."""
    from transformers import GenerationConfig, Qwen3Config

    from rlvr_exp.models.tokenizer import train_tokenizer

    domain, pieces = _sources()[name]()
    tasks = domain.splits()["train"]
    tokenizer = train_tokenizer((text for task in tasks for text in (domain.prompt(task), task.gold)), pieces)
    tokenizer.save_pretrained(target)
    special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    architecture = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        architectures=["Qwen3ForCausalLM"],
        **special,
    )
    architecture.save_pretrained(target)
    GenerationConfig(**special).save_pretrained(target)


def embed(checkpoint: Path, target: Path) -> None:
    """Write the checkpoint's weights as bfloat16, into the folder with tokenizer and architecture."""
    import torch
    from transformers import AutoModelForCausalLM

    for old in target.glob("*.safetensors*"):
        old.unlink()
    AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.bfloat16).save_pretrained(target, max_shard_size=SHARD)


def _sources() -> Mapping[str, Callable[[], tuple[Domain, str]]]:
    """The sources of each model: its domain, and how its tokenizer splits text."""
    from rlvr_exp.models.tokenizer import CODE, GRID
    from rlvr_exp.tasks.arc.domain import Arc
    from rlvr_exp.tasks.dafny.domain import DafnyDomain

    return {"tiny": lambda: (Arc(), GRID), "tiny_dafny": lambda: (DafnyDomain(role="both"), CODE)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m rlvr_exp.models.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("prepare", "embed"):
        commands.add_parser(command).add_argument("name", choices=sorted(_sources()))
    commands.choices["embed"].add_argument("checkpoint", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "prepare":
        prepare(arguments.name, embedded_folder(arguments.name))
    else:
        embed(arguments.checkpoint, embedded_folder(arguments.name))


if __name__ == "__main__":
    main()
