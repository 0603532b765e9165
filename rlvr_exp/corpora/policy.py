"""The files of an embedded policy: tokenizer and architecture from the embedded train split, then trained weights.

    +stage=prepare prepare=policy prepare.name=NAME          tokenizer and architecture
    +stage=sft +experiment=...                               trains it (docs/default_experiment.md, docs/dafny.md)
    +stage=prepare prepare=policy prepare.name=NAME prepare.path=CHECKPOINT    its weights, beside them

NAME is `tiny` (grid puzzles), `tiny_dafny` (bodies of Dafny methods to write and to annotate), `tiny_edits` (edits by ast-grep),
`tiny_solver` (coding problems in stages of reasoning) or `tiny_tester` (their tests and critiques).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, Qwen3Config

from rlvr_exp.config.schema import Config
from rlvr_exp.core.domains import domains, load
from rlvr_exp.models.random_weights import CODE, GRID, train_tokenizer, training_texts
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Domain

SHARD = "1900KB"
SOURCES: Mapping[str, Callable[[], tuple[Domain, str]]] = {}
"""The sources of each model: its domain, and how its tokenizer splits text."""
PIECES = {"grid": GRID, "code": CODE}


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write tokenizer and architecture; of a checkpoint, its weights."""
    options = config.prepare
    folder = Path(options.output or context.directory / options.name)
    if options.path:
        embed(Path(options.path), folder)
    else:
        describe(options.name, folder)
    return f"written: {folder}", {"files": len(list(folder.iterdir()))}


def describe(name: str, target: Path) -> None:
    """Write tokenizer and architecture. The same corpus gives the same files."""
    embedded = {own: load(path) for one in domains().values() for own, path in one.embedded.items()}
    domain, pieces = {**SOURCES, **embedded}[name]()
    tokenizer = train_tokenizer(training_texts(domain), PIECES[pieces])
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
    for old in target.glob("*.safetensors*"):
        old.unlink()
    AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.bfloat16).save_pretrained(target, max_shard_size=SHARD)
