"""Which step is the best one, by any metric of its row, and how many steps without a better one end training."""

from pathlib import Path

import pytest
from fake_training import FakeTracker, contents_of
from tiny_step import policy

from rlvr_exp.config.run import Checkpoint
from rlvr_exp.config.select import Select
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.training.checkpoints import Checkpoints
from rlvr_exp.training.selection import Selection

METRIC = "reward/mean"


def selected(tmp_path: Path, values: list[float | None], **options) -> tuple[Selection, int]:
    """A selection after a value of each step, and how many steps were trained."""
    tracker, checkpoints = FakeTracker(), Checkpoints(tmp_path, Checkpoint(keep=1))
    selection = Selection(Select(metric=METRIC, **options), checkpoints, tracker)
    contents = contents_of(policy(), select=selection)
    for step, value in enumerate(values, 1):
        tracker.log(step, {} if value is None else {METRIC: value})
        selection.consider(step)
        selection.consider(step)
        if selection.is_best(step):
            checkpoints.save(step, contents)
            checkpoints.mark_best(step)
        if selection.stopped:
            break
    return selection, step


@pytest.mark.parametrize(
    ("values", "options", "best", "trained"),
    [
        ([0.1, 0.4, 0.3, 0.2], {}, 2, 4),
        ([0.4, 0.4, 0.4, 0.3], {"patience": 2}, 3, 3),
        ([0.1, 0.4, 0.3, 0.2, 0.9], {"patience": 2}, 2, 4),
        ([3.0, 2.0, 2.5, 1.0], {"mode": "min"}, 4, 4),
        ([None, 0.2, None, 0.1], {"patience": 1}, 2, 4),
    ],
)
def test_the_best_by_any_metric_is_named_and_patience_ends(tmp_path, values, options, best, trained) -> None:
    """Considering a step twice, before its row and after it, counts once."""
    selection, done = selected(tmp_path, values, **options)
    assert (selection.step, done) == (best, trained)
    link = (tmp_path / "checkpoints" / "best").resolve()
    assert link.name == f"step_{best:06d}" and selection.best_path == link
    again = Selection(Select(metric=METRIC, **options), Checkpoints(tmp_path, Checkpoint()), FakeTracker())
    again.load_state_dict(selection.state_dict())
    assert again.state_dict() == selection.state_dict() and again.stopped == selection.stopped
    other = Selection(Select(metric="success/mean"), Checkpoints(tmp_path, Checkpoint()), FakeTracker())
    other.load_state_dict(selection.state_dict())
    assert other.value is None and other.best_path is None


def test_a_best_one_that_is_lost_is_looked_for_anew(tmp_path: Path, caplog) -> None:
    selection, _ = selected(tmp_path, [0.5, 0.1])
    (tmp_path / "checkpoints" / "step_000001" / "state.json").write_bytes(b"")
    selection.load_state_dict(selection.state_dict())
    assert selection.value is None and "best checkpoint is lost" in caplog.text


def test_a_metric_that_no_row_has_stops_the_run(tmp_path: Path) -> None:
    selection, _ = selected(tmp_path, [None, None])
    with pytest.raises(GuardStop, match="no row of metrics has it"):
        selection.check()


def test_where_nothing_is_selected_nothing_is_the_best(tmp_path: Path) -> None:
    selection = Selection(Select(), Checkpoints(tmp_path, Checkpoint()), FakeTracker())
    selection.consider(1)
    selection.check()
    assert not selection.is_best(1) and not selection.stopped and selection.best_path is None
