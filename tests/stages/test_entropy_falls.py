"""What 200 steps of the default run do to the entropy of its policy."""

import subprocess
from pathlib import Path
from statistics import fmean

import pytest
from program import ENVIRONMENT, INTERPRETED, metrics_of

WORDS = ["+stage=grpo", "algorithm.max_steps=200", "run.select.times=0", "evaluation.tasks=8"]
STEPS = 10
"""Whose mean is taken: one step's 256 answers differ by what they are asked."""


@pytest.mark.slow
@pytest.mark.property(41)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_token_has_less_entropy_after_training(seed: int, tmp_path: Path) -> None:
    command = [*INTERPRETED, *WORDS, f"seed={seed}", "run.dir=run"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = metrics_of(tmp_path / "run")
    entropy = [row["entropy"] for row in rows]
    assert len(entropy) == 200 and 0 < fmean(entropy[-STEPS:]) < fmean(entropy[:STEPS])
