"""Dynamic sampling through the command: batches that serve several steps, pending groups, and accounting that adds
up."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

STEPS, PROMPTS, SIZE = 4, 4, 4


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("dapo")
    sizes = {
        "max_steps": STEPS,
        "prompts_per_step": PROMPTS,
        "group_size": SIZE,
        "rollout_steps": 2,
        "resample_budget": 3,
    }
    words = ["+stage=grpo", "+experiment=quick", "algorithm=dapo", *(f"algorithm.{k}={v}" for k, v in sizes.items())]
    command = [*PROGRAM, *words, "evaluation.tasks=4", "verifier.validate=2", "run.dir=run"]
    done = subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "run"


def metrics_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_the_books_of_every_step_add_up_to_what_its_rollouts_hold(run):
    rows = metrics_of(run)
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    for row, path in zip(rows, rollout_steps(run).values(), strict=True):
        parts = [row[f"samples/{part}"] for part in ("trained", "filtered", "pending", "no_verdict")]
        assert sum(parts) == row["samples/sampled"]
        samples = read_rollouts(path)
        fates = Counter(one.fate for one in samples)
        assert fates["trained"] == row["samples/trained"] == sum(one.advantage is not None for one in samples)
        assert sum(one.waited == 0 for one in samples) == row["samples/sampled"]


@pytest.mark.slow
def test_groups_that_wait_are_trained_on_later(run):
    waited = [one for path in rollout_steps(run).values() for one in read_rollouts(path) if one.waited]
    assert waited and {one.fate for one in waited} <= {"trained", "no_verdict"}
    put_by = sum(row["samples/pending"] for row in metrics_of(run))
    state = json.loads((run / "checkpoints" / "latest" / "state.json").read_text())["collector"]
    assert put_by == SIZE * len(state["waiting"])


@pytest.mark.slow
def test_every_row_has_the_figures_of_an_update(run):
    for row in metrics_of(run):
        assert {"entropy", "grad_norm", "grad_norm/after", "clip/low", "clip/high", "kl/old", "loss"} <= set(row)
    # The first step's learning rate is 0; the last one is the second of its batch.
    assert metrics_of(run)[-1]["kl/old"] > 1e-8 > abs(metrics_of(run)[0]["kl/old"])
