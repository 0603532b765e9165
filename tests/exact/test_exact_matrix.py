"""Every point of death in every stage that trains: `bash launchers/test.sh -m exact`.

An uninterrupted run is made once for each stage and plan of processes, as a person starts it. Runs of one process that
die are forks (nursery.py); two processes, a parent that dies and a run that is asked to stop are the program itself.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import killing
import pytest
import trajectories
from nursery import Nursery
from trajectories import SAMPLING, STAGES, differences, go_on, program, whole

pytestmark = [pytest.mark.exact, pytest.mark.slow]

TWO = {plan: [f"parallel={plan}", "parallel.processes=2"] for plan in ("ddp", "zero2", "zero3")}
"""By plan: each rank dies once."""
DEATHS = [("ddp", "1", "generation"), ("ddp", "0", "writing"), ("zero2", "1", "backward"), ("zero2", "0", "written")]
CASES = [(stage, *death) for stage in ("sft", "grpo", "ppo") for death in DEATHS]
Wholes = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> Wholes:
    """The uninterrupted run of a stage under a plan of processes."""
    made: dict[tuple[str, str], Path] = {}

    def of(stage: str, plan: str) -> Path:
        if (stage, plan) not in made:
            place = tmp_path_factory.mktemp("whole")
            made[stage, plan] = whole(program, [*STAGES[stage], *TWO.get(plan, [])], place)
        return made[stage, plan]

    return of


@pytest.fixture(scope="module")
def nursery() -> Iterator[trajectories.Runner]:
    with Nursery() as made:
        yield made.run


@pytest.mark.parametrize("point", killing.POINTS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_killed_anywhere_goes_on_bit_for_bit(stage, point, tmp_path: Path, wholes: Wholes, nursery) -> None:
    assert trajectories.killed_and_resumed(nursery, stage, point, tmp_path, whole_run=wholes(stage, "")) == []


@pytest.mark.parametrize(("stage", "plan", "rank", "point"), CASES)
def test_two_processes_of_which_one_dies(stage, plan, rank, point, tmp_path: Path, wholes: Wholes) -> None:
    words = [*STAGES[stage], *TWO[plan]]
    assert trajectories.killed_and_resumed(program, stage, point, tmp_path, wholes(stage, plan), words, KILL_RANK=rank) == []


def test_zero3_goes_on_to_rounding(tmp_path: Path, wholes: Wholes) -> None:
    """DeepSpeed fetches shards in another order in its first step: 1e-7 in the weights after two steps was measured."""
    words = [*STAGES["grpo"], *TWO["zero3"]]
    assert go_on(program, words, tmp_path, killing.at("generation", SAMPLING["grpo"], KILL_RANK="1")) == 1
    assert go_on(program, words, tmp_path) == 0
    alike(trajectories.rows(wholes("grpo", "zero3")), trajectories.rows(tmp_path / "run"))


def alike(first: list[dict], second: list[dict]) -> None:
    assert [row["step"] for row in first] == [row["step"] for row in second]
    for ours, theirs in zip(first, second, strict=True):
        figures = [{name: float(value) for name, value in row.items()} for row in (ours, theirs)]
        assert figures[0] == pytest.approx(figures[1], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("stage", STAGES)
def test_two_deaths_of_the_parent_as_well(stage: str, tmp_path: Path, wholes: Wholes) -> None:
    for point, step in (("backward", 2), ("generation", SAMPLING[stage])):
        code = go_on(program, STAGES[stage], tmp_path, killing.at(point, step, KILL_PARENT="1"))
        assert code == -9
    assert go_on(program, STAGES[stage], tmp_path) == 0
    assert differences(wholes(stage, ""), tmp_path / "run") == []


def test_ranks_change_neither_samples_nor_verdicts(wholes: Wholes) -> None:
    assert trajectories.judged(wholes("grpo", "ddp")) == trajectories.judged(wholes("grpo", ""))


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_is_asked_to_stop_goes_on_bit_for_bit(stage: str, tmp_path: Path, wholes: Wholes) -> None:
    assert go_on(program, STAGES[stage], tmp_path, killing.at("asked", 3)) == 130
    assert "a checkpoint was written" in trajectories.said_in(tmp_path)
    assert go_on(program, STAGES[stage], tmp_path) == 0
    first, second = trajectories.trace(wholes(stage, "")), trajectories.trace(tmp_path / "run")
    extra = "step_000003/"  # Written because it was asked to stop there.
    assert not [name for name in trajectories.differing(first, second) if not name.startswith(extra)]
