"""TensorBoard's files are read back by its own reader: scalars, texts, and what a resume hides."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from completions import completion

from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import COLUMNS, Tracker, read_metrics
from rlvr_exp.training.tensorboard import TensorBoard

COMPLETION = completion("rotate-1", "failed", "wrong_answer", log="case 2 | expected\n<b>1</b>")
ROW = RolloutRow(COMPLETION, step=1, group=0, prompt="1 2")


def test_a_missing_package_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(InputError, match="pip install tensorboard, or choose tracking=files"):
        TensorBoard()


def test_building_it_imports_no_package():
    code = "import sys; from rlvr_exp.training.tensorboard import TensorBoard; TensorBoard();"
    code += "sys.exit(bool({'tensorboard', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tensorboard_events_are_read_back_and_a_resume_hides_what_it_repeats(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Tracker(tmp_path, TensorBoard()) as tracker:
        for step in (1, 2, 3):
            tracker.log(step, {"reward/mean": step / 4, "kl": math.nan})
    with Tracker(tmp_path, TensorBoard(), resume_step=2) as tracker:
        tracker.log(3, {"reward/mean": 1.0})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["reward/mean"]
    assert [(event.step, event.value) for event in events.Scalars("reward/mean")] == [(1, 0.25), (2, 0.5), (3, 1.0)]


def test_the_rates_before_and_after_are_scalars_with_their_intervals_and_in_no_row(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rates = {"pass_at_1": Rate(0.25, 0.125, 0.5, n=16, samples=8)}
    with Tracker(tmp_path, TensorBoard()) as tracker:
        tracker.rates("before", 0, rates)
        tracker.log(1, {"reward/mean": 0.5})
        tracker.rates("after", 1, rates)
        tracker.rates("after", 1, {})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    ends = {"": 0.25, "/low": 0.125, "/high": 0.5}
    found = {name: [(one.step, one.value) for one in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert found.pop("reward/mean") == [(1, 0.5)]
    assert found == {f"{when}/pass_at_1{end}": [(step, value)]
                     for when, step in (("before", 0), ("after", 1)) for end, value in ends.items()}  # fmt: skip
    assert [row.keys() for row in read_metrics(tmp_path)] == [{"step", "reward/mean"}]


def test_tensorboard_has_texts_beside_its_scalars(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "config.yaml").write_text("seed: 4\n")
    with Tracker(tmp_path, TensorBoard(samples=2)) as tracker:
        tracker.log(1, {"reward/mean": 0.4})
        other = replace(COMPLETION, sample=1, text="\ud800")
        tracker.samples([replace(ROW, reward=0.1), replace(ROW, reward=0.9, completion=other)], 0)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    texts = {tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in events.Tags()["tensors"]}
    assert "seed: 4" in texts["config/text_summary"] and str(tmp_path / "checkpoints") in texts["paths/text_summary"]
    lines = texts["samples/text_summary"].splitlines()
    assert len(lines) == 4 and lines[0].count("|") == lines[2].count("|") == len(COLUMNS) + 1
    assert "case 2 &#124; expected<br>&lt;b>1&lt;/b>" in lines[2]
    assert events.Scalars("reward/mean")[0].value == pytest.approx(0.4)
