"""Real runs of the program on pretended CUDA devices (`pretend_cuda`), as many as the default suite can afford, and a limit on
how often a run waits for its device."""

import math
from collections import Counter
from pathlib import Path

import pytest
from rehearsal import LORA, NEEDS_COMPILER, SMALL, Rehearsal, completed, log

pytestmark = NEEDS_COMPILER
PER_DECODING_STEP, PER_UPDATE = 16, 265
"""The most synchronisations of host and device: for each token that a batch of rows decodes, and for the rest of a step, of five
passes. Lower them when the code waits less often. FlexAttention, which is not compiled here, causes 88 of the rest."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return completed(tmp_path_factory.mktemp("grpo") / "run", "+stage=grpo", *SMALL)


def check_steps(run: Rehearsal, processes: int = 1) -> None:
    assert [len(report["updates"]) for report in run.reports] == [2] * processes
    losses = {row["step"]: row["loss"] for row in run.metrics if "loss" in row}
    assert list(losses) == [1, 2] and all(map(math.isfinite, losses.values()))
    assert "packed rows use" not in log(run.folder), "FlexAttention is the first choice on a GPU"


def test_grpo_trains_on_one_device(run: Rehearsal) -> None:
    check_steps(run)


def test_synchronisations_do_not_grow(run: Rehearsal) -> None:
    """Between the optimizer steps lie the log of step 1, and the rollouts and the update of step 2."""
    first, second = map(Counter, run.reports[0]["updates"])
    between = second - first
    sampling = sum(count for place, count in between.items() if place.startswith("rollouts/"))
    steps = run.metrics[-1]["tokens/completion_max"]
    assert 0 < sampling / steps <= PER_DECODING_STEP, between
    assert 0 < between.total() - sampling <= PER_UPDATE, between


def test_an_adapter_in_bfloat16_trains_with_checkpointed_gradients(tmp_path: Path) -> None:
    check_steps(completed(tmp_path / "run", "+stage=grpo", *SMALL, *LORA))


def test_two_processes_train_on_two_devices(tmp_path: Path) -> None:
    check_steps(completed(tmp_path / "run", "+stage=grpo", *SMALL, "parallel=ddp", devices=2), processes=2)
