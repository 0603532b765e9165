"""The embedded policy: where it stands and how its files are made.

    python -m rlvr_exp.models.embedded prepare          the tokenizer and the architecture, from the embedded train split
    python -m rlvr_exp +stage=sft model.from_scratch=true ...     trains it (docs/tiny_model.md has the exact command)
    python -m rlvr_exp.models.embedded embed CHECKPOINT  its weights, as bfloat16 in files below 2 MB
"""

import argparse
from pathlib import Path

import rlvr_exp

EMBEDDED = Path(rlvr_exp.__file__).parent / "assets" / "models" / "tiny"
SHARD = "1900KB"


def prepare(target: Path) -> None:
    """Write tokenizer and architecture. The same corpus gives the same files."""
    from transformers import GenerationConfig, Qwen3Config

    from rlvr_exp.models.tokenizer import train_tokenizer
    from rlvr_exp.tasks.arc.domain import Arc

    domain = Arc()
    tasks = domain.splits()["train"]
    tokenizer = train_tokenizer(text for task in tasks for text in (domain.prompt(task), task.gold))
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
    """Write the checkpoint's weights beside tokenizer and architecture, as bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM

    for old in target.glob("*.safetensors*"):
        old.unlink()
    AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.bfloat16).save_pretrained(target, max_shard_size=SHARD)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m rlvr_exp.models.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare")
    commands.add_parser("embed").add_argument("checkpoint", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "prepare":
        prepare(EMBEDDED)
    else:
        embed(arguments.checkpoint, EMBEDDED)


if __name__ == "__main__":
    main()
