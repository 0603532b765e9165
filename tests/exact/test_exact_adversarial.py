"""A solver and a tester in their schedule: killed at the border of every stage of reasoning and within every phase, the run goes on
bit for bit; who does not learn stays as it is; a damaged role is told by its name."""

import json
from pathlib import Path

import killing
import pytest
from trajectories import differences, forked, said_in

pytestmark = pytest.mark.slow

WORDS = [
    "+stage=adversarial",
    "+experiment=quick",
    "run.checkpoint.every_steps=2",
    "run.checkpoint.keep=20",
    "evaluation.tasks=2",
    "evaluation.samples=1",
    "environment.attempts=2",
    "environment.critique_weight=0.2",
    "data.limit=24",
    "verifier.validate=1",
]
"""At each of the five stages of reasoning a step of the tester, one of the solver, one of the tester."""
STEPS, AT_A_STAGE = 15, 3
LEARNS = {1: "tester", 2: "solver", 0: "tester"}
"""By the place in a stage of reasoning."""


def go(place: Path, env: dict[str, str], *words: str) -> int:
    return forked([*WORDS, *words, f"run.dir={place / 'run'}", "run.resume=auto"], place, env, place / "said.txt")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    assert go(place, {}) == 0, said_in(place)
    return place / "run"


@pytest.mark.property(24)
@pytest.mark.parametrize(
    ("point", "step"),
    [
        *(("written", AT_A_STAGE * stage) for stage in (1, 4)),
        *(pytest.param("written", AT_A_STAGE * stage, marks=pytest.mark.exact) for stage in (2, 3)),
        *(("generation", step) for step in (7, 14)),
        *(pytest.param("backward", step, marks=pytest.mark.exact) for step in (4, 5, 6)),
    ],
)
def test_it_goes_on_from_every_border_and_from_within_every_phase(point, step, whole: Path, tmp_path: Path) -> None:
    assert go(tmp_path, killing.at(point, step)) == 1, said_in(tmp_path)
    assert go(tmp_path, {}) == 0, said_in(tmp_path)
    assert "resuming after step" in said_in(tmp_path)
    assert differences(whole, tmp_path / "run") == []


def sums(run: Path, step: int, role: str) -> dict[str, str]:
    """The checksums of a role's weights in a step's checkpoint."""
    written = json.loads((run / "checkpoints" / f"step_{step:06d}" / "checkpoint.json").read_text())["sha256"]
    return {name: value for name, value in written.items() if name.startswith(f"{role}/") and "safetensors" in name}


def test_who_does_not_learn_has_the_same_weights_before_and_after(whole: Path) -> None:
    there = {int(path.name[5:]) for path in (whole / "checkpoints").glob("step_*")}
    assert {AT_A_STAGE * stage for stage in range(1, 6)} <= there, "one after each stage of reasoning"
    for step in sorted(step for step in there if step - 1 in there):
        learning = LEARNS[step % AT_A_STAGE]
        (frozen,) = {"solver", "tester"} - {learning}
        assert sums(whole, step - 1, frozen) == sums(whole, step, frozen) != {}
        rows = (whole / "metrics.jsonl").read_text().splitlines()
        row = next(one for line in rows if (one := json.loads(line))["step"] == step and "adversarial/stage" in one)
        assert f"{learning}/loss" in row and f"{frozen}/loss" not in row
        assert row["adversarial/stage"] == (step - 1) // AT_A_STAGE + 1
    assert len({tuple(sums(whole, step, "solver").values()) for step in (3, 15)}) == 2, "in the end both have learned"
    assert len({tuple(sums(whole, step, "tester").values()) for step in (3, 15)}) == 2


def test_a_damaged_role_of_a_checkpoint_is_told_by_its_name(whole: Path, tmp_path: Path) -> None:
    assert go(tmp_path, killing.at("written", 4)) == 1
    damaged = max((tmp_path / "run" / "checkpoints").glob("step_*")) / "tester" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    words = ["+stage=evaluate", "data=problems", "environment=adversarial", f"model.path={damaged.parents[1]}"]
    said = tmp_path / "evaluated.txt"
    assert forked([*words, f"run.dir={tmp_path / 'evaluated'}"], tmp_path, {}, said) == 2
    assert "tester/model.safetensors" in said.read_text()
    assert go(tmp_path, {}) == 0, said_in(tmp_path)
    assert "is damaged and moved aside" in said_in(tmp_path) and "tester/model.safetensors" in said_in(tmp_path)


def test_a_pass_begins_at_any_stage_with_both_roles_of_a_checkpoint(whole: Path, tmp_path: Path) -> None:
    start = [f"model.path={whole / 'checkpoints' / 'step_000006'}", "schedule.start_stage=5", "algorithm.max_steps=3"]
    assert go(tmp_path, {}, *start) == 0, said_in(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {row["adversarial/stage"] for row in rows if "adversarial/stage" in row} == {5.0}
    about = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert about["train"]["split"] == "practice"
