"""Distributions: bins that count every value once, early against late, and what they are counted of."""

import json
import re

from completions import completion
from hypothesis import given
from hypothesis import strategies as st
from report_pages import Page, evaluation, report, rollouts

from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.report.charts import MOST_BINS, histogram
from rlvr_exp.report.tasks import TaskInfo


def drawn(title, *args, **options):
    return Page(histogram(title, *args, **options)).charts[title]


@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_every_value_is_counted_in_one_bin(first, second):
    groups = {"a": first, "b": second}
    shares = drawn("t", groups, [9, 1], "x")
    assert list(shares["series"]) == [name for name, values in groups.items() if values], "no group without a value"
    assert all(abs(sum(values) - 1) < 1e-2 for values in shares["series"].values())
    counts = drawn("t", groups, [9, 1], "x", stacked=True)
    assert [sum(values) for values in counts["series"].values()] == [
        len(values) for values in groups.values() if values
    ]
    assert len(counts["x"]) == MOST_BINS and counts["counted"] == "x"


def test_a_value_stands_in_the_bin_that_is_named_for_it():
    chart = drawn("t", {"a": [0.0, 2.0, 2.0, 19.5]}, [1], "tokens", stacked=True)
    width = 20 / MOST_BINS
    for name, count in zip(chart["x"], chart["series"]["a"], strict=True):
        low, high = map(float, name.split(" to "))
        assert high - low == width and count == sum(low <= value < high for value in (0, 2, 2, 19.5))
    assert histogram("t", {"a": []}, [1], "tokens") == ""


def test_layers_stack_and_outlines_do_not():
    groups = {"a": [1.0, 1.0], "b": [1.0]}
    stacked, beside = (drawn("t", groups, [3, 6], "x", stacked=kind) for kind in (True, False))
    assert [path["class"] for path in stacked["paths"]] == ["bar c3", "bar c6"]
    assert [path["class"] for path in beside["paths"]] == ["bar c3", "line c6"]
    (floor,) = re.findall(r"M[\d.]+ ([\d.]+)V", stacked["paths"][1]["d"])
    assert re.findall(r"V([\d.]+)h", stacked["paths"][0]["d"]) == [floor], "the second begins where the first ends"


def test_rewards_and_lengths_of_the_first_and_the_last_third_of_a_run(tmp_path):
    for step in range(1, 10):
        rows = [
            RolloutRow(completion("t", sample=i, tokens=step), step, 0, "p", reward=0.0, terms={"cases": step / 10}, waited=i)
            for i in range(2)
        ]  # fmt: skip
        write_rollouts(tmp_path, step, rows)
    charts = report(tmp_path).charts
    for title in ("Completions by reward", "Completions by length"):
        assert list(charts[title]["series"]) == ["steps 1 to 3", "steps 7 to 9"]
    text = (tmp_path / "report.html").read_text()
    assert "3, median 0.2" in text and "3, median 0.8" in text, "before the normaliser; what waited was counted before"
    assert "3, median 2<" in text and "3, median 8<" in text


def test_a_run_of_one_step_has_one_group(tmp_path):
    rollouts(tmp_path, 4)
    assert list(report(tmp_path).charts["Completions by reward"]["series"]) == ["step 4"]


def test_without_rollouts_the_lengths_are_those_of_the_evaluations(tmp_path):
    save(tmp_path, "after", evaluation(range(4), "after"))
    assert list(report(tmp_path).charts["Completions by length"]["series"]) == ["held out, after"]


def test_held_out_tasks_by_difficulty_and_by_whether_they_were_solved(whole, monkeypatch):
    monkeypatch.setattr("rlvr_exp.report.load_task_index", lambda *_: {f"t{i}": TaskInfo(i, None) for i in range(11)})
    chart = report(whole).charts["Held-out tasks by difficulty"]
    sums = {name: sum(values) for name, values in chart["series"].items()}
    assert sums == {"always solved": 7, "never solved": 4}, json.dumps(chart)
    assert chart["counted"] == "difficulty"
