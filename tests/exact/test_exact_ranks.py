"""Two processes of which one dies, or which receive a stop request: `bash launchers/test.sh -m exact`.

GRPO dies at every point; imitation and PPO at four, under DDP and ZeRO-2; some under ZeRO-3. Each rank dies somewhere.
"""

import random
from collections.abc import Callable
from pathlib import Path

import killing
import pytest
import trajectories
from damage import Attacked
from trajectories import SIGNALS, STAGES, go_on, program, whole

pytestmark = [pytest.mark.exact, pytest.mark.slow]

TWO = {plan: [f"parallel={plan}", "parallel.processes=2"] for plan in ("ddp", "zero2", "zero3")}
TWO["zero3"] += ["evaluation.tasks=1", "evaluation.samples=1", "evaluation.greedy=false"]
"""Where weights are gathered for sampling, a rank without a shard of the work must not block the others."""
DEATHS = [("zero2", "0", "written"), ("ddp", "1", "generation"), ("ddp", "0", "writing"), ("zero2", "1", "backward")]
FURTHER = [
    ("ddp", "1", "verification"),
    ("ddp", "0", "logging"),
    ("zero2", "0", "generation"),
    ("zero2", "1", "verification"),
]
CASES = [(stage, *death) for stage in ("grpo", "sft", "ppo") for death in DEATHS]
CASES += [("grpo", *death) for death in FURTHER] + [("dapo", "ddp", "1", "generation")]
CASES += [("sdpo", "ddp", "1", "backward"), ("srpo", "zero2", "0", "written")]
CASES += [("grpo", "zero3", "1", "backward"), ("ppo", "zero3", "0", "written")]
Wholes = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> Wholes:
    """The uninterrupted run of a stage under a plan of processes; '': of one process."""
    made: dict[tuple[str, str], Path] = {}

    def of(stage: str, plan: str) -> Path:
        if (stage, plan) not in made:
            place = tmp_path_factory.mktemp("whole")
            made[stage, plan] = whole(program, [*STAGES[stage], *TWO.get(plan, [])], place)
        return made[stage, plan]

    return of


@pytest.fixture(scope="module")
def nursery() -> trajectories.Runner:
    return trajectories.forked


@pytest.mark.parametrize(("stage", "plan", "rank", "point"), CASES)
def test_two_processes_of_which_one_dies(stage, plan, rank, point, tmp_path: Path, wholes: Wholes, nursery) -> None:
    words = [*STAGES[stage], *TWO[plan]]
    assert (
        trajectories.killed_and_resumed(nursery, stage, point, tmp_path, wholes(stage, plan), words, KILL_RANK=rank)
        == []
    )


@pytest.mark.parametrize(("stage", "plan"), [("grpo", "zero2"), ("sft", "ddp"), ("ppo", "ddp")])
def test_two_processes_asked_to_stop_at_any_moment(
    stage: str, plan: str, tmp_path: Path, wholes: Wholes, nursery
) -> None:
    by, after_s = random.choice(SIGNALS), random.uniform(0, trajectories.seconds_of(wholes(stage, plan)))
    words = [*STAGES[stage], *TWO[plan]]
    code, kept = trajectories.stopped_and_resumed(nursery, words, tmp_path, after_s, by)
    print(f"{stage}, {plan}: {by.name} after {after_s:.2f} s: exit {code}, checkpoint: {kept}")
    assert code == 130
    assert trajectories.without_extra(wholes(stage, plan), tmp_path / "run") == []


@pytest.mark.parametrize("stage", ["grpo", "sft"])
def test_two_processes_asked_to_stop_in_a_step(stage: str, tmp_path: Path, wholes: Wholes, nursery) -> None:
    words, by = [*STAGES[stage], *TWO["ddp"]], random.choice(SIGNALS).name
    assert go_on(nursery, words, tmp_path, killing.at("backward", 3, KILL_BY=by)) == 130
    assert "a checkpoint was written" in trajectories.said_in(tmp_path)
    assert go_on(nursery, words, tmp_path) == 0
    assert trajectories.without_extra(wholes(stage, "ddp"), tmp_path / "run") == []


def test_ranks_change_neither_samples_nor_verdicts(wholes: Wholes) -> None:
    assert trajectories.judged(wholes("grpo", "ddp")) == trajectories.judged(wholes("grpo", ""))


def test_no_damaged_file_of_a_sharded_checkpoint_loads(tmp_path: Path, wholes: Wholes, nursery) -> None:
    """Including optimizer states in pickles of DeepSpeed: none is opened before it is checked against the manifest."""
    words = [*STAGES["grpo"], *TWO["zero2"]]
    foreign = whole(nursery, [*words, "seed=1"], tmp_path)
    attacked = Attacked(words, wholes("grpo", "zero2"), foreign, tmp_path / "copy")
    assert attacked.all() == []
    print(f"grpo, zero2: {attacked.counts}")
    attacked.by_command()
