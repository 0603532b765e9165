"""The order of a step, when checkpoints are written, and when training ends; learners and rollouts are fakes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fake_training import FakeLearner, FakeTracker, kept, named
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from tiny_step import policy

from rlvr_exp.config.run import Checkpoint, Select
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.training.checkpoints import Checkpoints, Contents
from rlvr_exp.training.loop import Loop, Measurement
from rlvr_exp.training.row_log import RowLog
from rlvr_exp.training.selection import Selection
from rlvr_exp.training.step_log import ResourceTrends, StepClock

METRIC = "reward/mean"


class Feed:
    rows = ()

    def __init__(self, told: list[str]):
        self._told = told

    def collect(self, step: int) -> str:
        self._told.append(f"collects {step}")
        return f"rollouts {step}"

    def write(self, learners) -> None:
        self._told.append(f"writes rollouts of {' and '.join(learners)}")


class Told(FakeTracker):
    def __init__(self, told: list[str]):
        super().__init__()
        self._told = told

    def log(self, step: int, row) -> None:
        super().log(step, row)
        self._told.append(f"row {step}")


class Writing(Checkpoints):
    told: list[str]

    def save(self, step: int, contents: Contents) -> Path:
        self.told.append(f"checkpoint {step}")
        return super().save(step, contents)


class Run:
    """A loop with its fakes.

    Args:
        values: the metric that selects, by step from 1; steps without one have none.
        stop_at: the step in which a stop is requested.
        roles: the roles that learn in a step.
    """

    def __init__(
        self,
        place: Path,
        steps: int,
        values: Sequence[float | None] = (),
        stop_at: int = 0,
        roles: Callable[[int], Sequence[str]] = lambda step: ("policy",),
        every: int = 50,
        rows_every: int = 1,
        period: int = 1,
        learners: Sequence[str] = ("policy",),
        clock: StepClock | None = None,
        **select,
    ):
        self.told: list[str] = []
        self.events: list[dict] = []
        self.context = RunContext(place, self.events.append)
        self.learners = {role: FakeLearner(role, self.told, period) for role in learners}
        self.tracker = Told(self.told)
        self.checkpoints = Writing(place, Checkpoint(every_steps=every, keep=99))
        self.checkpoints.told = self.told
        self.selection = Selection(Select(metric=METRIC, **select), self.checkpoints, self.tracker)
        self._steps, self._values, self._stop_at = steps, values, stop_at
        everyone = policy()
        self.loop = Loop(
            context=self.context,
            learners=self.learners,
            learning=roles,
            feed=Feed(self.told),
            measurements=[Measurement(self._has_value, self._measure), Measurement(self._stops, self._stop)],
            log=RowLog(self.tracker, self.context, self.learners, dict, rows_every, 0, len(self.learners) > 1),
            tracker=self.tracker,
            trends=ResourceTrends(place, 0),
            selection=self.selection,
            checkpoints=self.checkpoints,
            contents=Contents(everyone, self.learners, {"select": self.selection}),
            seed=0,
            clock=clock or StepClock(),
        )

    def run(self, done: int = 0) -> int:
        return self.loop.run(done, self._steps)

    @property
    def shown(self) -> list[int]:
        """Steps whose progress was shown."""
        return [event["step"] for event in self.events if event["kind"] == "step"]

    def _has_value(self, step: int) -> bool:
        self._step = step
        return step <= len(self._values) and self._values[step - 1] is not None

    def _measure(self) -> dict[str, float]:
        self.told.append(f"measures {self._step}")
        return {METRIC: self._values[self._step - 1]}

    def _stops(self, step: int) -> bool:
        return step == self._stop_at

    def _stop(self) -> dict[str, float]:
        self.context.interrupted = True
        return {}


def test_a_step_from_its_rollouts_to_its_checkpoint(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=2, values=[0.5, 0.1])
    assert run.run() == 2 and run.context.steps == 2 and run.shown == [1, 2]
    first = ["collects 0", "policy takes rollouts 0", "writes rollouts of policy", "policy updates"]
    first += ["measures 1", "row 1", "row 1", "checkpoint 1"]
    last = ["collects 1", "policy takes rollouts 1", "writes rollouts of policy", "policy updates"]
    last += ["measures 2", "row 2", "row 2", "policy ends", "checkpoint 2"]
    assert run.told == first + last
    assert named(run.checkpoints, "best") == "step_000001" and named(run.checkpoints, "latest") == "step_000002"


def test_a_batch_of_rollouts_serves_as_many_updates_as_the_learner_takes_from_it(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5, period=2)
    run.run()
    assert [line for line in run.told if "collects" in line] == ["collects 0", "collects 2", "collects 4"]
    assert run.told.count("policy updates") == 5


@pytest.mark.parametrize(
    ("roles", "updates"),
    [
        (lambda step: ("writer", "annotator"), ["writer", "annotator"] * 4),
        (lambda step: ("writer", "annotator")[step % 2 :][:1], ["writer", "annotator"] * 2),
        (lambda step: ("annotator",), ["annotator"] * 4),
    ],
    ids=["joint", "alternating", "one frozen"],
)
def test_the_schedule_says_who_learns_and_those_of_a_step_take_the_same_rollouts(tmp_path, roles, updates) -> None:
    run = Run(tmp_path, steps=4, roles=roles, learners=("writer", "annotator"))
    run.run()
    assert [line.split()[0] for line in run.told if line.endswith("updates")] == updates
    for step in range(4):
        taken = [line for line in run.told if line.endswith(f"takes rollouts {step}")]
        assert [line.split()[0] for line in taken] == list(roles(step))
        assert run.told.count(f"collects {step}") == 1
    assert sum(line.endswith("ends") for line in run.told) == 2


def test_a_role_in_the_middle_of_its_batch_takes_no_other(tmp_path: Path) -> None:
    """And one that got nothing from the last rollouts is not updated."""
    run = Run(tmp_path, steps=4, learners=("writer", "annotator"), roles=lambda step: ("writer", "annotator"), period=2)
    run.learners["annotator"].steps = 1
    run.learners["writer"].ready = False
    run.loop._update(0)
    assert "annotator updates" in run.told and "writer updates" not in run.told
    assert [line for line in run.told if "takes" in line] == ["writer takes rollouts 0"]


def test_rows_may_be_rarer_than_steps_and_the_last_step_has_one(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5, rows_every=3, every=1)
    run.run()
    assert run.tracker.steps == run.shown == [3, 5] and kept(run.checkpoints) == [1, 2, 3, 4, 5]
    assert run.told[-3:] == ["row 5", "policy ends", "checkpoint 5"], "a run resumed from it would never log the row"


@settings(max_examples=tries(15), deadline=None)
@given(
    values=st.lists(st.none() | st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=7),
    every=st.integers(1, 4),
    patience=st.integers(0, 3),
)
def test_checkpoints_are_those_that_are_due_the_best_so_far_and_the_last(tmp_path_factory, values, every, patience):
    run = Run(tmp_path_factory.mktemp("run"), len(values), values, every=every, patience=patience)
    done = run.run()
    wanted, best, waited = set(), None, 0
    for step, value in enumerate(values, 1):
        if value is not None:
            waited = 0 if best is None or value > best[0] else waited + 1
            if best is None or value >= best[0]:
                best = (value, step)
                wanted.add(step)
        if step % every == 0:
            wanted.add(step)
        if 0 < patience <= waited:
            break
    assert done == step and kept(run.checkpoints) == sorted({*wanted, step})
    assert named(run.checkpoints, "best") == (f"step_{best[1]:06d}" if best else "")
    assert run.told[-2:] == ["policy ends", f"checkpoint {step}"]


@pytest.mark.parametrize("done", [4, 2])
def test_where_no_step_is_left_none_is_done(tmp_path: Path, done: int) -> None:
    run = Run(tmp_path, steps=4, patience=1, values=[0.1] * 4)
    state = {"by": [METRIC, "max"], "value": None, "step": 1, "waited": int(done < 4), "seen": 2}
    run.selection.load_state_dict(state)
    assert run.run(done) == done and run.told == []


def test_a_run_asked_to_stop_has_its_checkpoint(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=9, stop_at=3, rows_every=5)
    with pytest.raises(Interrupted, match="step 3 of 9"):
        run.run()
    assert kept(run.checkpoints) == [3] and run.context.steps == 3
    assert run.learners["policy"].steps == 3 and "policy ends" not in run.told


def test_a_stop_in_the_last_step_ends_the_training_as_any_other(tmp_path: Path) -> None:
    """Also where it is the best one: what follows the training is stopped instead."""
    run = Run(tmp_path, steps=3, stop_at=3, values=[0.1, 0.2, 0.3], every=3)
    assert run.run() == 3
    assert kept(run.checkpoints) == [1, 2, 3] and named(run.checkpoints, "best") == "step_000003"


def test_every_step_is_a_sign_of_life(tmp_path: Path) -> None:
    run, beats = Run(tmp_path, steps=3, rows_every=3), []
    run.context.heartbeat = lambda: beats.append(run.learners["policy"].steps)
    run.run()
    assert beats[:3] == [0, 1, 2]


def test_a_trial_ends_after_its_seconds_with_a_row_and_a_checkpoint(tmp_path: Path) -> None:
    ticks = iter(range(1000))
    run = Run(tmp_path, steps=50, clock=StepClock(3.0, lambda: float(next(ticks))))
    assert run.run() == 4, "a step of one second that warms up, and three"
    assert run.told[-3:] == ["row 4", "policy ends", "checkpoint 4"]
