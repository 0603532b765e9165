"""Adapters through the commands: imitation, and RL that continues the adapter over a base in 4 bits."""

import json
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from program import metrics_of, run_program

pytestmark = pytest.mark.slow

SMALL = [
    "+experiment=quick",
    "evaluation.tasks=2",
    "evaluation.samples=2",
    "model.max_completion_tokens=16",
    "data.limit=60",
]
FEW = ["algorithm.max_steps=2", "optimizer.lr=5e-3"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """`imitated`, and `learned`, which continues its adapter under a KL penalty."""
    place = tmp_path_factory.mktemp("adapters")
    new = ["model.adapter.kind=lora", "model.adapter.rank=4", "model.gradient_checkpointing=true"]
    first = run_program(place, "+stage=sft", *SMALL, *FEW, "algorithm.eval_every_steps=2", *new, "run.dir=imitated")
    assert first.returncode == 0, first.stdout + first.stderr
    on = ["model.path=imitated/checkpoints/best", "model.quantization=4bit", "algorithm.kl_coef=0.01"]
    then = run_program(place, "+stage=grpo", *SMALL, *FEW, *on, "algorithm.prompts_per_step=4", "run.dir=learned")
    assert then.returncode == 0, then.stdout + then.stderr
    assert "parameters are trained" in first.stdout and "model.quantization=none" in then.stdout
    return place


def test_training_is_of_the_adapter_alone(place):
    for run in ("imitated", "learned"):
        counted = json.loads((place / run / "manifest.json").read_text())["model"]
        assert counted["trained"] == 48_640 and all(".lora_" in name for name in counted["trained_by_part"])
        found = {path.name for path in (place / run / "checkpoints" / "latest").iterdir()}
        assert "adapter_model.safetensors" in found and "model.safetensors" not in found
    assert metrics_of(place / "imitated")[-1]["adapter/delta"] > 0


def test_the_card_is_that_of_an_adapter(place):
    card = ModelCard.load(place / "imitated" / "checkpoints" / "best" / "README.md")
    assert (card.data.base_model, card.data.library_name, card.data.tags[-1]) == ("rlvr_exp/tiny", "peft", "lora")


def test_the_penalty_counts_from_the_base(place):
    first = metrics_of(place / "learned")[0]
    assert first["kl"] > 1e-7 and first["adapter/delta"] > 0, "the adapter went on; its start is not the reference"
