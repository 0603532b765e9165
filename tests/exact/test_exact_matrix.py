"""Every point of death in every stage that trains, in a single process: `bash launchers/test.sh -m exact`.

The uninterrupted run of each stage is started once, as a person starts it; killed or stopped runs are forks of a
process that has everything imported (tests/nursery.py). Two processes: test_exact_ranks.py.
"""

import random
from collections.abc import Callable
from pathlib import Path

import killing
import pytest
import trajectories
from damage import Attacked
from every_file import every_file
from trajectories import SAMPLING, SIGNALS, STAGES, differences, differing, go_on, program, whole

pytestmark = [pytest.mark.exact, pytest.mark.slow]

LAYOUT = ["algorithm.rollout_batch_size=3", "evaluation.batch_size=3", "sandbox.workers=3", "cache.enabled=false"]
"""Options that change no update: gradients are summed in the same order."""
Wholes = Callable[[str], Path]


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> Wholes:
    """The uninterrupted run of a stage."""
    made: dict[str, Path] = {}

    def of(stage: str) -> Path:
        if stage not in made:
            made[stage] = whole(program, STAGES[stage], tmp_path_factory.mktemp("whole"))
        return made[stage]

    return of


@pytest.fixture(scope="module")
def nursery() -> trajectories.Runner:
    return trajectories.forked


@pytest.mark.parametrize("point", killing.POINTS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_killed_anywhere_goes_on_bit_for_bit(stage, point, tmp_path: Path, wholes: Wholes, nursery) -> None:
    assert trajectories.killed_and_resumed(nursery, stage, point, tmp_path, whole_run=wholes(stage)) == []


@pytest.mark.parametrize("point", ["logging", "writing", "written"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_killed_at_its_end_goes_on_bit_for_bit(
    stage: str, point: str, tmp_path: Path, wholes: Wholes, nursery
) -> None:
    """The last row may belong to a step for which no row would be due."""
    assert go_on(nursery, STAGES[stage], tmp_path, killing.at(point, trajectories.STEPS)) == 1
    assert go_on(nursery, STAGES[stage], tmp_path) == 0
    assert differences(wholes(stage), tmp_path / "run") == []


@pytest.mark.parametrize("stage", STAGES)
def test_two_deaths_of_the_parent_as_well(stage: str, tmp_path: Path, wholes: Wholes, nursery) -> None:
    for point, step in (("backward", 2), ("generation", SAMPLING[stage])):
        assert go_on(nursery, STAGES[stage], tmp_path, killing.at(point, step, KILL_PARENT="1")) == -9
    assert go_on(nursery, STAGES[stage], tmp_path) == 0
    assert differences(wholes(stage), tmp_path / "run") == []


@pytest.mark.parametrize("point", ["generation", "backward", "writing"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_asked_to_stop_in_a_step_goes_on_bit_for_bit(
    stage, point, tmp_path: Path, wholes: Wholes, nursery
) -> None:
    by, step = (
        random.choice(SIGNALS).name,
        SAMPLING[stage] if point == "generation" else 4,
    )  # The one after is the last.
    print(f"{stage}: {by} at {point} of step {step}")
    assert go_on(nursery, STAGES[stage], tmp_path, killing.at(point, step, KILL_BY=by)) == 130
    assert (tmp_path / "run" / "checkpoints" / "latest").exists()
    assert go_on(nursery, STAGES[stage], tmp_path) == 0
    assert trajectories.without_extra(wholes(stage), tmp_path / "run") == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_asked_to_stop_at_any_moment_goes_on_bit_for_bit(
    stage: str, tmp_path: Path, wholes: Wholes, nursery
) -> None:
    by, after_s = random.choice(SIGNALS), random.uniform(0, trajectories.seconds_of(wholes(stage)))
    code, kept = trajectories.stopped_and_resumed(nursery, STAGES[stage], tmp_path, after_s, by)
    print(f"{stage}: {by.name} after {after_s:.2f} s: exit {code}, checkpoint: {kept}")
    assert code == 130
    assert trajectories.without_extra(wholes(stage), tmp_path / "run") == []


@pytest.mark.parametrize("stage", STAGES)
def test_one_seed_makes_one_run_to_every_byte_but_times(stage: str, tmp_path: Path, nursery) -> None:
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        runs.append(every_file(whole(nursery, STAGES[stage], tmp_path / name, "run")))
    assert differing(*runs) == []


@pytest.mark.parametrize("stage", ["grpo", "ppo", "dapo"])
def test_layout_changes_no_sample_of_any_step(stage: str, tmp_path: Path, wholes: Wholes, nursery) -> None:
    other = whole(nursery, [*STAGES[stage], *LAYOUT], tmp_path)
    ours, theirs = (trajectories.trace(run)["rollouts"] for run in (wholes(stage), other))
    assert len(ours) > 1 and ours == theirs


@pytest.mark.parametrize("stage", ["grpo", "ppo", "sft"])
def test_no_damaged_file_of_a_checkpoint_loads(stage: str, tmp_path: Path, wholes: Wholes, nursery) -> None:
    foreign = whole(nursery, [*STAGES[stage], "seed=1"], tmp_path)
    attacked = Attacked(STAGES[stage], wholes(stage), foreign, tmp_path / "copy")
    assert attacked.all() == []
    print(f"{stage}: {attacked.counts}")
    attacked.by_command()


@pytest.mark.parametrize("stage", ["grpo", "sft"])
def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(stage, tmp_path, wholes, nursery) -> None:
    assert go_on(nursery, STAGES[stage], tmp_path, killing.at("written", 4)) == 1
    (tmp_path / "run" / "checkpoints" / "step_000004" / "state.json").write_bytes(b"{}")
    assert go_on(nursery, STAGES[stage], tmp_path) == 0
    assert "step_000004 is damaged and moved aside" in trajectories.said_in(tmp_path)
    assert "resuming after step 2" in trajectories.said_in(tmp_path)
    assert differences(wholes(stage), tmp_path / "run") == []


OTHER = {
    "optimizer.lr=0.003": "optimizer.lr: differs from that of the run to resume",
    "algorithm.group_size=4": "algorithm.group_size: differs from that of the run to resume",
    "model.dtype=bfloat16": "model.dtype: differs from that of the run to resume",
    "data.limit=7": "data.limit: differs from that of the run to resume",
    "seed=1": "seed: differs from that of the run to resume",
    "algorithm.max_steps=3": "algorithm.max_steps: the checkpoint is past it",
}


@pytest.mark.parametrize(
    "options", [*((option,) for option in OTHER), tuple(OTHER)], ids=lambda options: f"{len(options)}"
)
def test_what_does_not_fit_is_refused_with_every_difference(options, tmp_path: Path, wholes: Wholes, nursery) -> None:
    run, before = wholes("grpo"), trajectories.untouched(wholes("grpo"))
    words = [*STAGES["grpo"], f"data.path={trajectories.data()}", f"run.dir={run}", "run.resume=auto", *options]
    assert nursery(words, tmp_path, {}, tmp_path / "said.txt") == 2
    said = (tmp_path / "said.txt").read_text()
    assert all(OTHER[option] in said for option in options) and trajectories.untouched(run) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_completed_run_says_so_and_is_left_alone(stage: str, tmp_path: Path, wholes: Wholes, nursery) -> None:
    run, before = wholes(stage), trajectories.untouched(wholes(stage))
    words = [*STAGES[stage], f"data.path={trajectories.data(*STAGES[stage])}", f"run.resume={run}"]
    assert nursery(words, tmp_path, {}, tmp_path / "said.txt") == 0
    assert "completed already, after 5 steps" in (tmp_path / "said.txt").read_text()
    assert trajectories.untouched(run) == before
