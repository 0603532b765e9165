"""Success by task: the file, the table of the page, and its sorting."""

import csv
import shutil

import pytest
from completions import completion
from report_pages import dom_after, evaluation, report

from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation
from rlvr_exp.report.tasks import COLUMNS, TABLE, TaskInfo, save_task_table, task_rows

KNOWN = {f"t{i}": TaskInfo(i * 5 % 12, None) for i in range(11)}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    monkeypatch.setattr("rlvr_exp.report.tasks.load_task_index", lambda *_: KNOWN)
    monkeypatch.setattr("rlvr_exp.report.load_task_index", lambda *_: KNOWN)
    for when, passing in (("before", range(5)), ("after", range(3, 10))):
        save(tmp_path, when, evaluation(passing, when))
        save_task_table(tmp_path)
    return tmp_path


def test_the_file_has_the_success_of_each_task_easiest_first(measured):
    with open(measured / TABLE, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert tuple(rows[0]) == COLUMNS and len(rows) == 12
    assert [float(row["difficulty"]) for row in rows[:11]] == sorted(one.difficulty for one in KNOWN.values())
    assert rows[-1]["task"] == "t11" and rows[-1]["difficulty"] == "", "unknown ones last"
    for when in ("before", "after"):
        wanted = task_values(read_evaluation(measured, when), "pass_at_1")
        assert {row["task"]: float(row[f"{when}_success"]) for row in rows} == wanted
    of_task = {row["task"]: row for row in rows}
    assert of_task["t0"] | {"family": "flip", "change": "-1.0", "commonest_failure": "wrong_answer"} == of_task["t0"]
    assert (
        of_task["t9"]["change"] == "1.0"
        and of_task["t9"]["after_judged"] == "8"
        and not of_task["t9"]["commonest_failure"]
    )


def test_what_has_no_verdict_is_in_no_rate():
    verdicts = [("passed", None), ("no_verdict", None), ("failed", "timeout"), ("failed", "timeout")]
    answers = [EvalSample(completion("a", *one, sample=i), "sampled", "") for i, one in enumerate(verdicts)]
    (row,) = task_rows({"after": answers}, {})
    assert (row["after_passed"], row["after_judged"], row["after_success"]) == (1, 3, 1 / 3)
    assert row["before_success"] is row["change"] is row["after_greedy"] is None
    assert row["commonest_failure"] == "timeout"


def test_the_page_has_a_table_of_the_tasks(measured):
    page = report(measured)
    assert ("th", "sampled, before") in page.texts and ("th", "commonest failure") in page.texts
    assert ("td", "t9") in page.texts and ("td", "+100") in page.texts and ("td", "-100") in page.texts
    (measured / "evaluation" / "before.jsonl.gz").unlink()
    assert ("th", "sampled, before") not in report(measured).texts, "a column without a figure"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
def test_a_click_sorts_by_a_column_and_a_second_one_the_other_way(measured):
    report(measured)

    def column(head, clicks, cell):
        return dom_after(
            measured,
            f"const t = document.querySelector('.sortable'), h = [...t.rows[0].cells].find(c => c.textContent === '{head}');"
            f"for (let i = 0; i < {clicks}; i++) h.click();"
            f"[...t.rows].slice(1).map(r => r.cells[{cell}].textContent).join(' ')",
        ).split()

    changes = [int(text) for text in column("change", 1, 7)]
    assert changes == sorted(changes) and changes[0] == -100 < changes[-1]
    for clicks in (1, 2):
        *known, unknown = column("difficulty", clicks, 2)
        numbers = [int(text) for text in known]
        assert numbers == sorted(numbers, reverse=clicks == 2) and max(numbers) == 11 and unknown == "\u2013"
    assert column("task", 2, 0) == sorted((f"t{i}" for i in range(12)), reverse=True)
