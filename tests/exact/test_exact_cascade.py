"""A cascade whose roles take turns, killed while one of them is idle: both resume bit for bit.

The writer has trained and has no turn between the kill and the next checkpoint, so that its state is copied as it was
read. Both are adapters of the same base, with dropout: each role has random numbers of its own.
"""

from pathlib import Path

import killing
import pytest
from trajectories import Runner, differences, forked, said_in

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.package import INSTALL
from rlvr_exp.domains.dafny.tool import find

pytestmark = pytest.mark.slow

WORDS = [
    "+stage=cascade",
    "cascade.mode=alternating",
    "cascade.every_steps=2",
    "cascade.annotations=2",
    "algorithm.max_steps=7",
    "algorithm.prompts_per_step=2",
    "algorithm.group_size=3",
    "run.checkpoint.every_steps=2",
    "run.checkpoint.keep=9",
    "run.select.every_steps=3",
    "run.select.tasks=2",
    "run.select.samples=1",
    "run.log_every_steps=1",
    "evaluation.tasks=2",
    "evaluation.samples=1",
    "verifier.validate=1",
    "data.limit=12",
    "model.adapter.kind=lora",
    "model.adapter.dropout=0.1",
    "reward=normalized",
    "optimizer.lr=2e-3",
]
"""Annotator in steps 1, 2, 5 and 6, writer in 3, 4 and 7."""
FIFTH = 5
"""The annotator's third step, after the checkpoint of step 4."""


@pytest.fixture(scope="module")
def runner() -> Runner:
    try:
        find()
    except InputError:
        pytest.skip(f"NO DAFNY: nothing is proved here; {INSTALL}")
    return forked


def go(runner: Runner, place: Path, env: dict[str, str]) -> int:
    return runner([*WORDS, f"run.dir={place / 'run'}", "run.resume=auto"], place, env, place / "said.txt")


@pytest.fixture(scope="module")
def whole(runner: Runner, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    assert go(runner, place, {}) == 0, said_in(place)
    return place / "run"


@pytest.mark.property(24)
@pytest.mark.parametrize(
    "point", ["generation", *(pytest.param(point, marks=pytest.mark.exact) for point in ("backward", "logging"))]
)
def test_roles_in_turn_go_on_as_if_nobody_had_died(point: str, whole: Path, tmp_path: Path, runner: Runner) -> None:
    assert go(runner, tmp_path, killing.at(point, FIFTH)) == 1
    written = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("step_*"))
    assert written == ["step_000002", "step_000003", "step_000004"], "when due, and at the best step"
    assert go(runner, tmp_path, {}) == 0, said_in(tmp_path)
    assert "resuming after step 4" in said_in(tmp_path)
    assert differences(whole, tmp_path / "run") == []
