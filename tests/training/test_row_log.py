"""A row has the metrics of every role under its name, and those that belong to none."""

import time
from pathlib import Path

from fake_training import FakeLearner, FakeTracker

from rlvr_exp.launch.console import FIGURES
from rlvr_exp.records.context import RunContext
from rlvr_exp.training.learner import Learner, RLLearner
from rlvr_exp.training.row_log import SHARED, RowLog

OF_STEPS = ("time/step", "time/step_core_seconds")


def logged(tmp_path: Path, *roles: str, shared: dict[str, float], step: int = 3) -> tuple[dict, list[dict]]:
    """The row of a step, and the events that it shows."""
    tracker, events = FakeTracker(), []
    learners = {role: FakeLearner(role) for role in roles}
    log = RowLog(
        tracker, RunContext(tmp_path, events.append), learners, lambda: shared, every=3, done=0, named=len(learners) > 1
    )
    assert [step for step in range(1, 8) if log.due(step)] == [3, 6]
    log.write(step, 9, [], seed=0)
    assert tracker.last_step == step
    return tracker.last, events


def test_a_role_alone_has_no_prefix(tmp_path: Path) -> None:
    shared = {"held_out/pass_at_1": 0.5, "time/verify": 0.1}
    row, (event,) = logged(tmp_path, "policy", shared=shared)
    assert row.keys() == {"loss", "time/update", *OF_STEPS, *shared}
    assert (event["step"], event["total"], event["loss"], event["held-out success"]) == (3, 9, 0.0, 0.5)
    assert event["phases"] == {"verify": 0.1, "update": 0.5}


def test_of_several_roles_each_has_its_name_behind_what_depends_on_the_machine(tmp_path: Path) -> None:
    row, (event,) = logged(tmp_path, "writer", "annotator", shared={"cascade/success/mean": 0.5, "time/verify": 0.1})
    own = {name for role in ("writer", "annotator") for name in (f"{role}/loss", f"time/{role}/update")}
    assert row.keys() == {*own, *OF_STEPS, "cascade/success/mean", "time/verify"}
    assert event["success"] == 0.5 and "loss" not in event
    assert event["roles"] == {"writer": {"loss": 0.0}, "annotator": {"loss": 0.0}}


def test_a_row_tells_the_core_seconds_of_a_step(tmp_path: Path) -> None:
    log = RowLog(FakeTracker(), RunContext(tmp_path, lambda _: None), {}, dict, every=3, done=0, named=False)
    began = time.process_time()
    while time.process_time() < began + 0.3:
        pass
    log.write(3, 9, [], seed=0)
    assert 0.08 < log._tracker.last["time/step_core_seconds"] < 0.3


def test_a_policy_gradient_shows_no_loss() -> None:
    assert set(RLLearner.figures) == {"reward", "success", "entropy", "KL(ref)", "KL(old)"}
    assert {*RLLearner.figures, *Learner.figures, *SHARED} == {name for name, _ in FIGURES}
