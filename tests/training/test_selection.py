"""Which step is the best one, by any metric of its row, and how many steps without a better one end training."""

from pathlib import Path

import pytest
from fake_training import FakeTracker, contents_of
from tiny_step import policy

from rlvr_exp.config.run import Checkpoint, Select
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.training.checkpoints import Checkpoints
from rlvr_exp.training.selection import Selection

METRIC, INFINITE = "reward/mean", float("inf")
"""A metric; and a value that is not finite, which rows hold as null."""


def selected(tmp_path: Path, values: list[float | None], **options) -> tuple[Selection, int]:
    """A selection after a value of each step, and how many steps were trained."""
    tracker, checkpoints = FakeTracker(), Checkpoints(tmp_path, Checkpoint(keep=1))
    selection = Selection(Select(metric=METRIC, **options), checkpoints, tracker)
    contents = contents_of(policy(), select=selection)
    for step, value in enumerate(values, 1):
        tracker.log(step, {} if value is None else {METRIC: None if value == INFINITE else value})
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
        ([INFINITE, 0.2, INFINITE, 0.1], {"patience": 1}, 2, 4),
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


def test_a_weighted_sum_of_metrics_decides_where_a_row_has_all_of_them(tmp_path: Path) -> None:
    wanted = Select(metric="0.7 * reward/mean + 0.3*success/mean")
    assert not wanted.problems() and wanted.active and wanted.weights == {"reward/mean": 0.7, "success/mean": 0.3}
    tracker = FakeTracker()
    selection = Selection(wanted, Checkpoints(tmp_path, Checkpoint()), tracker)
    for step, row in enumerate([(0.2, 1.0), (0.6, 0.2), (0.9, None), (0.5, 0.3)], 1):
        names = zip(wanted.weights, row, strict=True)
        tracker.log(step, {name: value for name, value in names if value is not None})
        selection.consider(step)
    assert selection.step == 2 and selection.value == pytest.approx(0.48)


@pytest.mark.parametrize("metric", ["0.7 x reward/mean", "0.7 * ", "reward/mean + ", "a * b"])
def test_what_is_no_sum_of_metrics_is_refused(metric: str) -> None:
    assert [one.where for one in Select(metric=metric).problems()] == ["metric"]


def test_a_sum_with_held_out_success_has_it_measured() -> None:
    wanted = Select(metric="0.5 * held_out/pass_at_1 + 0.5 * reward/mean", times=4)
    assert wanted.measures and wanted.active
    assert not Select(metric="held_out/pass_at_1", times=4).active
