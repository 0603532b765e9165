"""Stages and options of training on one pretended CUDA device: real runs."""

import math
from pathlib import Path

import pytest
from rehearsal import NEEDS_COMPILER, SMALL, completed

pytestmark = [NEEDS_COMPILER, pytest.mark.slow]
RUNS = {
    "ppo": ("+stage=ppo",),
    "filters": ("+stage=grpo", "algorithm.top_k=20", "algorithm.top_p=0.9", "algorithm.min_p=0.01"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_trains_on_one_device(name: str, tmp_path: Path) -> None:
    first, *words = RUNS[name]
    run = completed(tmp_path / "run", first, *SMALL, *words)
    losses = [row["loss"] for row in run.metrics if "loss" in row]
    assert run.reports[-1]["updates"] and losses and all(map(math.isfinite, losses))
