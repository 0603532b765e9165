"""A warm cache changes how long a run takes and no result."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytestmark = pytest.mark.slow

SMALL = ["+stage=grpo", "+experiment=quick", "algorithm.max_steps=1", "evaluation.tasks=2", "evaluation.samples=2"]
MACHINE = ("time/", "system/")


def train(place: Path, name: str) -> Path:
    words = [*PROGRAM, *SMALL, f"cache.path={place / 'cache'}", f"run.dir={name}"]
    done = subprocess.run(words, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / name


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def measured(run: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if not name.startswith(MACHINE)} for row in metrics(run)]


def test_training_is_the_same_with_a_cold_and_a_warm_cache(tmp_path):
    cold, warm = train(tmp_path, "cold"), train(tmp_path, "warm")
    assert measured(cold) == measured(warm) and measured(cold)[0]["reward/mean"] is not None
    hits = [metrics(run)[-1]["system/verifier_cache_hits_disk"] for run in (cold, warm)]
    assert (
        hits[0] == 0 < hits[1]
        and metrics(warm)[-1]["system/verifier_judged"] < metrics(cold)[-1]["system/verifier_judged"]
    )
    for step, path in rollout_steps(cold).items():
        assert read_rollouts(path) == read_rollouts(rollout_steps(warm)[step])
    before, after = (json.loads((run / "summary.json").read_text())["after"] for run in (cold, warm))
    assert before == after
