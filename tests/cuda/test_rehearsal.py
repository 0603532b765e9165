"""Real runs of the program on pretended CUDA devices (`pretend_cuda`): what the default suite can afford."""

import math
from pathlib import Path

from rehearsal import NEEDS_COMPILER, SMALL, completed

pytestmark = NEEDS_COMPILER


def test_grpo_trains_on_one_device(tmp_path: Path) -> None:
    run = completed(tmp_path / "run", "+stage=grpo", *SMALL)
    assert len(run.reports) == 1 and len(run.reports[0]["updates"]) == 2
    assert [row["step"] for row in run.metrics if "loss" in row] == [1, 2]
    assert all(math.isfinite(row["loss"]) for row in run.metrics if "loss" in row)
