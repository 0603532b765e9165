"""Runs that can be repeated: one kill in every stage that trains, and one seed in many layouts.

Where a run dies is drawn from the commit's hash and printed; `bash launchers/test.sh -m exact` tries every point.
"""

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import killing
import pytest
from nursery import Nursery
from trajectories import STAGES, Runner, differences, judged, killed_and_resumed, whole

pytestmark = pytest.mark.slow

ONE_STEP = [*STAGES["grpo"], "algorithm.max_steps=1"]
LAYOUT = [
    "algorithm.rollout_batch_size=3",
    "algorithm.max_tokens_per_device=400",
    "evaluation.batch_size=3",
    "sandbox.workers=1",
    "cache.enabled=false",
]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Nursery() as nursery:
        yield nursery.run


@pytest.fixture(scope="module")
def once(runner: Runner, tmp_path_factory) -> Path:
    return whole(runner, ONE_STEP, tmp_path_factory.mktemp("once"))


def drawn(stage: str) -> str:
    """A point that depends on the commit alone."""
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    number = int(hashlib.sha256(f"{told.stdout.strip()} {stage}".encode()).hexdigest(), 16)
    return sorted(killing.POINTS)[number % len(killing.POINTS)]


@pytest.mark.property(24)
@pytest.mark.parametrize("stage", ["sft", "grpo", "ppo"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(stage: str, tmp_path: Path, runner: Runner) -> None:
    point = drawn(stage)
    print(f"{stage}: killed at {point}")
    assert killed_and_resumed(runner, stage, point, tmp_path) == []


def test_one_seed_makes_one_run(once: Path, tmp_path: Path, runner: Runner) -> None:
    assert differences(once, whole(runner, ONE_STEP, tmp_path)) == []


def test_layout_changes_neither_samples_nor_verdicts(once: Path, tmp_path: Path, runner: Runner) -> None:
    assert judged(whole(runner, [*ONE_STEP, *LAYOUT], tmp_path)) == judged(once)


def test_another_seed_draws_other_samples(once: Path, tmp_path: Path, runner: Runner) -> None:
    assert judged(whole(runner, [*ONE_STEP, "seed=1"], tmp_path))["step"] != judged(once)["step"]
