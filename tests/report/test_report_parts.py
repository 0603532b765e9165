"""Parts of the report: old and running runs, intervals, options, golds, logs, runs side by side."""

import fcntl
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_pages import Page, coordinates, evaluation, log, report

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import resolved, to_yaml
from rlvr_exp.core.measures import BITS
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.report import answers, plots, tasks, write_report
from rlvr_exp.report.charts import curve_charts, other_charts
from rlvr_exp.report.data import read_run
from rlvr_exp.report.evidence import evidence
from rlvr_exp.report.outcome import changed, rated, track_of
from rlvr_exp.report.page import differences


def test_a_running_run_and_a_killed_one_are_told_apart(whole):
    (whole / "summary.json").unlink()
    (whole / ".lock").touch()
    assert "running" not in [text for tag, text in report(whole).texts if tag == "dd"]
    with open(whole / ".lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "running" in [text for tag, text in report(whole).texts if tag == "dd"]


def test_a_killed_run_whose_last_row_is_torn(whole):
    (whole / "summary.json").unlink()
    (whole / "report.html").unlink(missing_ok=True)
    with open(whole / "metrics.jsonl", "a", encoding="utf-8") as metrics:
        metrics.write('{"step": 41, "reward/me')
    page = report(whole)
    assert ("span", "not finished") in page.texts and next(iter(page.charts.values()))["x"][-1] == 40


def test_curves_of_samples_have_intervals(page):
    reward = next(chart for name, chart in page.charts.items() if name.startswith("Reward"))
    (band,) = [path for path in reward["paths"] if "band" in path["class"]]
    ends = [reward["low"] + (1 - y / 1000) * (reward["high"] - reward["low"]) for _, y in coordinates(band)]
    # Two groups a step, both of mean reward 0.15: the interval of equal means is that mean.
    assert len(ends) == 80 and ends == pytest.approx([0.15] * 80, abs=1e-3)


def test_options_that_differ_are_shown_with_their_defaults():
    given = {
        "stage": "grpo",
        "seed": 3,
        "algorithm": {"_target_": "rlvr_exp.algorithms.grpo.DAPO", "clip_high": 0.3, "clip_low": 0.2},
    }
    found = differences(given)
    assert found["seed"] == (3, 0) and found["algorithm.clip_high"] == (0.3, 0.28)
    assert found["algorithm._target_"][1] == "rlvr_exp.algorithms.grpo.GRPO"
    assert "algorithm.clip_low" not in found, "held against the defaults of its own class"


def test_the_defaults_do_not_differ():
    for stage in ("grpo", "ppo", "sft", "evaluate"):
        assert differences(resolved(compose([f"+stage={stage}"]))) == {}


def test_answers_are_held_against_the_gold(whole, monkeypatch):
    gold = "def solve(g):\n    return g[::-1]\n"
    found = {f"t{i}": tasks.TaskInfo(i / 12, gold) for i in range(12)}
    monkeypatch.setattr("rlvr_exp.report.load_task_index", lambda directory, prompts: found)
    page = report(whole)
    minus = [text for tag, text in page.texts if tag == "span" and text.startswith("-def solve")]
    plus = [text for tag, text in page.texts if tag == "span" and text.startswith("+after answer of")]
    assert len(minus) == len(plus) == 4, "two tasks that always fail, two that always pass"
    assert page.text.count("reference answer and the most frequent answer") == 4
    names = [named.get("title") for tag, named in page.tags if tag == "span"]
    assert "0 to 0.0833" in names and "0.75 to 0.917" in names, "fifths of the tasks by difficulty"


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_difference_says_equal_or_shows_what_differs(gold, answer):
    drawn = answers.difference(gold, answer)
    assert ("equal to the reference answer" in drawn) == (gold.strip() == answer.strip())
    assert "<script" not in drawn


def test_tasks_are_known_by_the_run_s_own_data(tmp_path):
    (tmp_path / "config.yaml").write_text(to_yaml(compose(["+stage=grpo", "data.limit=20"])))
    domain = Arc(limit=20)
    task, other = domain.splits()["test"][:2]
    wanted = {task.id: tasks.TaskInfo(task.difficulty, task.gold)}
    prompts = {task.id: domain.task_prompt(task), other.id: "another prompt", "gone": ""}
    assert tasks.load_task_index(tmp_path, prompts) == wanted
    tasks.save_task_index(tmp_path, [task])
    assert tasks.load_task_index(tmp_path, {}) == wanted, "noted by the run itself"


def test_logs_are_counted_by_their_first_line(kept):
    text = (kept[0] / "report.html").read_text()
    logs = re.sub("<.*?>", " ", re.search(r"<summary>Verifier logs</summary>(.*?)</section>", text, re.DOTALL)[1])
    # The rows of 24 of the 40 files are kept, each with two timeouts and two that ran out of memory.
    assert re.search(r"timeout\s+\d+\s+a log", logs) and re.search(r"memory\s+\d+\s+a log", logs)


def test_runs_are_drawn_beside_each_other(whole, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    log(other, steps=20)
    page = Page(write_report(whole, [other]).path.read_text())
    assert "Comparison with other runs" in page.text
    both = page.charts["Reward, all runs"]
    assert both["series"][other.name][20:] == [None] * 20 and len(both["series"][whole.name]) == 40


def test_seconds_per_step_hold_no_rates(tmp_path):
    with Tracker(tmp_path, Files()) as tracker:
        for step in (1, 2):
            tracker.log(step, {"time/generate": 0.8, "time/tokens_per_second": 2300.0, "system/rss_mb": 900.0})
    charts = report(tmp_path).charts
    (seconds,) = [chart for name, chart in charts.items() if name.startswith("Seconds")]
    assert list(seconds["series"]) == ["generate"]
    assert any(name.startswith("Generated tokens per second") for name in charts)
    assert any(name.startswith("Resident memory") for name in charts)


@pytest.mark.parametrize(
    ("restore", "whose"), [("true", "belong to the best step"), ("false", "belong to the last step")]
)
def test_what_was_selected_on_one_split_is_reported_on_another(page, whole, restore, whose):
    assert "Best step" not in page.text
    written = to_yaml(compose(["+stage=grpo", f"run.select.restore={restore}"]))
    (whole / "config.yaml").write_text(written)
    for name, more in (("manifest", {"select": {"split": "dev", "tasks": 64, "every_steps": 4}}), ("summary", {})):
        told = json.loads((whole / f"{name}.json").read_text())
        metrics = {"metrics": {"best/step": 36, "best/value": 0.3}} if name == "summary" else {}
        (whole / f"{name}.json").write_text(json.dumps({**told, **more, **metrics}))
    text = " ".join(report(whole).text.split())
    assert "Best step: 36, by held_out/pass_at_1 on 64 tasks of split 'dev'" in text
    assert f"{whose}" in text and "on split 'test', which was not used for the selection" in text


def test_the_accuracy_of_ppos_values_has_a_curve_of_its_own() -> None:
    rows = [{"step": step, "value/explained_variance": step / 10} for step in range(6)]
    assert "Explained variance of the values" in curve_charts(rows, [])
    assert other_charts(rows) == ("", 0)


def test_a_curriculum_is_drawn(tmp_path):
    with Tracker(tmp_path, Files()) as tracker:
        for step in range(1, 9):
            row = {"curriculum/band": step // 3, "curriculum/success_band_0": 0.7, "curriculum/success_band_1": 0.4}
            row |= {"curriculum/mixed_groups": 0.5, "curriculum/effective_prompts": 4.0, "curriculum/pool": 0.25}
            tracker.log(step, row)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    charts = Page(curve_charts(rows, [])).charts
    assert {len(chart["series"]) for name, chart in charts.items() if "Success by difficulty band" in name} == {2}
    for title in (
        "Difficulty band",
        "Curriculum pool",
        "Groups with mixed rewards",
        "Distinct tasks with",
    ):
        assert [name for name in charts if name.startswith(title)], title
    assert other_charts(rows) == ("", 0), "none is drawn twice"


def test_a_fall_is_for_the_better_where_less_is_better() -> None:
    fall = {"value": -0.1, "low": -0.2, "high": -0.05, "won": 3, "lost": 1}
    rise = fall | {"value": 0.1, "low": 0.05, "high": 0.2}
    shown = {
        (metric, change["value"]): changed(change, metric) for metric in ("", "excess_code") for change in (fall, rise)
    }
    assert {key: re.findall('class="(.*?)"', text) for key, text in shown.items()} == {
        ("", -0.1): ["down"], ("", 0.1): ["up"], ("excess_code", -0.1): ["up"], ("excess_code", 0.1): ["down"],
    }  # fmt: skip
    bits = changed(fall | {"value": -1.5}, BITS)
    assert "-1.500 bits a character</b>" in bits and 'class="up"' in bits
    assert rated({"value": 1.25, "low": 1.0, "high": 1.5}, BITS) == "<b>1.250</b> <small>1.000 to 1.500</small>"
    assert track_of(None, {"value": 1.25, "low": 1.0, "high": 1.5}, BITS) == ""


def test_a_fall_of_bits_is_no_loss_in_the_diagnosis(tmp_path) -> None:
    change = {"value": -0.5, "low": -0.6, "high": -0.4, "n": 9, "won": 9, "lost": 0, "tied": 0}
    (tmp_path / "evaluation").mkdir()
    numbers = {"rates": {}, "change": {BITS: change, "pass_at_1": change}}
    (tmp_path / "evaluation" / "after.json").write_text(json.dumps(numbers))
    assert list(evidence(read_run(tmp_path), {}).change) == ["pass_at_1"]


def test_numbers_along_a_logarithmic_axis_do_not_lie_on_each_other() -> None:
    near = [1e5, 328_128, 332_800, 1_197_760, 1_312_768]
    assert plots._log_ticks(near) == [1e5, 2e5, 5e5, 1e6] and plots._log_ticks([1.0, 10.0, 40.0]) == [1.0, 10.0, 40.0]


RATE = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 40, "samples": 2}
ROLES = {
    "writer": {
        "rates": {"functional_coverage": RATE, "bleu": {**RATE, "value": 0.613}, "exact_match_greedy": RATE},
        "by": {
            "length": {"032 to 063": {"functional_coverage": RATE}},
            "family": {"<i>": {"functional_coverage": RATE}},
        },
    }
}


def test_the_rates_of_a_role_are_shown_by_their_names(whole, page):
    assert not {"Roles", "Measures"} & {text for _, text in page.texts}, "a run without any has no such part"
    save(whole, "after", evaluation(range(4), "after"), more={"roles": ROLES})
    shown = [text for _, text in report(whole).texts]
    assert {"functional coverage", "BLEU", "exact match, greedy", "writer by length", "032 to 063", "<i>"} <= set(shown)
    assert "61.3%" in shown and any("25.0 to 75.0; 40 tasks" in text for text in shown)


def test_what_a_verifier_measured_is_shown(whole):
    rows = evaluation(range(4), "after")
    found = {"same_syntax": 0.25, "rules": 2.0}
    measured = [
        replace(one, completion=replace(one.completion, verdict=replace(one.verdict, measures=found))) for one in rows
    ]
    save(whole, "after", measured)
    shown = [text for _, text in report(whole).texts]
    assert {"Measures", "same syntax", "same syntax, greedy"} <= set(shown) and "25.0%" in shown
    assert "rules" in shown and "2.00" in shown and "200.0%" not in shown, "a count is no share"
