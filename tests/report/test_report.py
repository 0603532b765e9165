"""The report: one self-contained page whose curves are the data, for complete, partial and hostile runs."""

import json
import math
import re
import shutil

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from report_pages import CONFIG, HOSTILE, coordinates, dom_after, evaluation, report, rollouts

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, from_row, to_row
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.report import charts, write_report


def test_the_page_asks_the_network_for_nothing(whole):
    rollouts(whole, 41, HOSTILE)
    page = report(whole)
    linking = {"src", "href", "srcset", "action", "data", "poster", "xlink:href"}
    targets = {named[key] for tag, named in page.tags for key in linking & named.keys()}
    assert targets and all(target.startswith("#") for target in targets), "the table of contents alone"
    assert {"link", "iframe", "object", "img", "form", "base"} & {tag for tag, _ in page.tags} == set()
    text = (whole / "report.html").read_text()
    assert "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text


def test_what_a_run_printed_stays_text(whole):
    """Hostile text wherever a run puts text: names, options, tasks, families, answers, logs, reasons, commands, metrics."""
    (whole / "config.yaml").write_text(CONFIG.replace("tiny", json.dumps(HOSTILE)))
    rollouts(whole, 41, HOSTILE, log_text=HOSTILE, task=HOSTILE, family=HOSTILE)
    write_json(whole / "manifest.json", {"command": [HOSTILE], "hardware": {HOSTILE: HOSTILE}})
    write_json(
        whole / "summary.json", {"stage": "grpo", "status": "stopped", "reason": HOSTILE, "metrics": {HOSTILE: 1}}
    )
    with open(whole / "metrics.jsonl", "a", encoding="utf-8") as metrics:
        metrics.write(json.dumps({"step": 41, HOSTILE: 1.0, "system/rss" + HOSTILE: 2.0}) + "\n")
    texts = dict.fromkeys(("family", "completion", "log", "prompt"), HOSTILE)
    plain = [to_row(one) for one in evaluation(range(4), "after")]
    save(whole, "after", [from_row(EvalSample, {**one, "task": one["task"] + HOSTILE, **texts}) for one in plain])
    page = report(whole)
    assert sum(tag == "script" for tag, _ in page.tags) == 1 and not [1 for tag, _ in page.tags if tag == "img"]
    assert not [named for _, named in page.tags if any(name.startswith("on") for name in named)]
    assert ("pre", HOSTILE) in page.texts and ("p", HOSTILE) in page.texts
    assert HOSTILE in [text for tag, text in page.texts if tag == "dd"]


def test_the_head_says_what_was_run_and_how_it_ended(page):
    shown = [text for tag, text in page.texts if tag == "dd"]
    assert shown == ["tiny", "3 min 20 s", "40", "7", "Arc", "GRPO"]
    assert ("span", "completed") in page.texts
    assert ("code", "python -m rlvr_exp +stage=grpo 'a b'") in page.texts


def test_the_table_holds_the_rates_their_intervals_and_the_paired_change(kept):
    whole = kept[0]
    rows = re.findall(r"<tr><th>(pass@.*?)</tr>", (whole / "report.html").read_text())
    assert len(rows) == 3
    after = json.loads((whole / "evaluation" / "after.json").read_text())
    rate, change = after["rates"]["pass_at_1_greedy"], after["change"]["pass_at_1_greedy"]
    greedy = re.sub("<.*?>", " ", rows[1])
    assert greedy.startswith("pass@1, greedy") and "41.7%" in greedy and "58.3%" in greedy
    assert f"{100 * rate['low']:.1f} to {100 * rate['high']:.1f}" in greedy
    assert f"+16.7 points   {100 * change['low']:+.1f} to {100 * change['high']:+.1f}; tasks won: 5, lost: 3" in greedy


@pytest.mark.parametrize("title, metric", [("Reward", "reward/mean"), ("KL to the reference", "kl")])
def test_curve_points_are_the_data(kept, title, metric):
    whole, page = kept
    (chart,) = [chart for name, chart in page.charts.items() if name.startswith(title)]
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    known = [(row["step"], row[metric]) for row in rows if row[metric] is not None]
    points, line = (next(path for path in chart["paths"] if kind in path["class"]) for kind in ("points", "line"))
    drawn = [
        (1 + x / 1000 * 39, chart["low"] + (1 - y / 1000) * (chart["high"] - chart["low"]))
        for x, y in coordinates(points)
    ]
    assert len(drawn) == len(known)
    for (step, value), (x, y) in zip(known, drawn, strict=True):
        assert x == pytest.approx(step, abs=0.01) and y == pytest.approx(
            value, abs=2e-4 * (chart["high"] - chart["low"])
        )
    assert len(coordinates(line)) == len(known)
    assert chart["low"] <= min(value for _, value in known) and max(value for _, value in known) <= chart["high"]


def test_every_logged_metric_has_a_chart(page):
    titles = " | ".join(page.charts)
    for part in (
        "Reward",
        "Success rate",
        "Entropy",
        "KL",
        "Verdicts on training",
        "Groups of samples",
        "Seconds per step",
    ):
        assert part in titles
    assert "odd/metric" in titles and "time/step" in titles


def test_bars_stack_to_the_whole(page):
    charts = page.charts
    (verdicts,) = [chart for name, chart in charts.items() if name.startswith("Verdicts on training")]
    assert {name: values[0] for name, values in verdicts["series"].items()} == {
        "passed": 0.5,
        "timeout": 0.25,
        "memory": 0.25,
    }
    (seconds,) = [chart for name, chart in charts.items() if name.startswith("Seconds")]
    assert list(seconds["series"]) == ["generate", "verify", "update"]
    tops = [float(top) for top in re.findall(r"V([\d.]+)h", seconds["paths"][-1]["d"])]
    assert tops == pytest.approx([1000 - 1000 * 2.1 / seconds["high"]] * 40, abs=0.2)
    bottoms = re.findall(r"M[\d.]+ ([\d.]+)V", seconds["paths"][1]["d"])
    assert bottoms == re.findall(r"V([\d.]+)h", seconds["paths"][0]["d"])


def test_samples_show_gains_losses_and_others_once_each_with_both_verdicts(page):
    tags = [text for tag, text in page.texts if tag == "span" and text in ("best", "worst", "random")]
    assert tags[:9] == ["best"] * 3 + ["worst"] * 3 + ["random"] * 3
    tasks = [text for tag, text in page.texts if tag == "small" and re.fullmatch(r"t\d+", text)][:9]
    assert len(set(tasks)) == 9
    assert set(tasks[:3]) <= {f"t{i}" for i in range(5, 10)} and set(tasks[3:6]) == {"t0", "t1", "t2"}
    for task in tasks:
        assert f"before answer of {task}" in page.text and f"after answer of {task}" in page.text


def test_no_answer_stands_twice_under_one_title(whole):
    for step in range(1, 41):
        rollouts(whole, step, text="def solve(g): return g" if step < 40 else "the same text")
    page = report(whole)
    tags = [text for tag, text in page.texts if tag == "span" and text in ("best", "worst", "random")]
    assert tags[9:] == ["best"], "all answers of the last step have one text"


def test_the_table_of_contents_leads_to_every_section(page):
    links = [named["href"][1:] for tag, named in page.tags if tag == "a" and named["href"].startswith("#")]
    assert links == [named["id"] for tag, named in page.tags if tag == "section"]
    assert {"diagnosis", "success-before-and-after", "training", "manifest"} <= {*links}


def test_the_time_of_a_batch_is_divided_among_its_completions(page):
    """108 completions, each with a verdict 0.25 s after the batch began."""
    assert "before: 0.00231 s (108 completions in 0.25 s, up to 108 at once)" in " ".join(page.text.split())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
def test_the_page_is_short_and_a_link_opens_a_folded_section(kept):
    assert int(dom_after(kept[0], "document.documentElement.scrollHeight")) < 5000
    opened = "document.querySelector('#success-by-task>details').open"
    assert dom_after(kept[0], opened) == "false"
    assert dom_after(kept[0], f"location.hash = '#success-by-task'; unfold(); {opened}") == "true"


def test_the_same_run_gives_the_same_page_and_nothing_else_is_written(whole):
    def files():
        return {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}

    before = files()
    report(whole)
    assert files() == before


def test_arc_prompts_are_drawn_as_grids(page):
    cells = [named["d"] for tag, named in page.tags if tag == "path" and named["class"] == "g1"]
    assert cells[:2] == ["M0 0h.92v.92h-.92z", "M1 0h.92v.92h-.92z"]


def test_families_are_shown_with_their_counts(page):
    assert ("span", "rotate+crop") in page.texts and ("span", "flip") in page.texts
    assert page.text.count("n=6") == 2


def test_a_supervised_run_that_still_goes_on(tmp_path):
    (tmp_path / "config.yaml").write_text("stage: sft\nseed: 0\n")
    with Tracker(tmp_path, Files()) as tracker:
        tracker.log(1, {"loss": 2.5})
    page = report(tmp_path)
    assert ("span", "not finished") in page.texts
    assert list(page.charts) == ["Loss"] and ("b", "last 2.5") in page.texts
    assert "Success before and after" not in page.text and "Answers" not in page.text


def test_an_evaluation_alone(tmp_path):
    save(tmp_path, "after", evaluation(range(4), "after", "no puzzle"))
    page = report(tmp_path)
    assert "Measurements" in page.text and "Success before and after" not in page.text and "33.3%" in page.text
    cards = page.text[page.text.rindex("Answers on held-out tasks") : page.text.rindex("All answers to a few tasks")]
    assert cards.count("after answer of") == 9 and list(page.charts) == ["Completions by length"]


def test_the_difference_to_a_baseline_is_shown_with_its_interval(tmp_path):
    (tmp_path / "config.yaml").write_text("stage: evaluate\nevaluate: {baseline: runs/other}\n")
    change = {"value": -0.1, "low": -0.15, "high": -0.05, "n": 400, "won": 10, "lost": 50, "tied": 340}
    write_json(tmp_path / "summary.json", {"stage": "evaluate", "metrics": {"difference/pass_at_1": change, "x": 1.0}})
    page = report(tmp_path)
    assert ("b", "-10.0 points") in page.texts and ("th", "difference from runs/other") in page.texts
    assert ("small", "-15.0 to -5.0; tasks won: 10, lost: 50") in page.texts


def test_an_empty_directory_gives_an_empty_page_and_a_missing_one_an_error(tmp_path):
    assert "not finished" in report(tmp_path).text
    with pytest.raises(InputError, match="no such directory"):
        write_report(tmp_path / "none")


@pytest.mark.parametrize("name", ["summary.json", "config.yaml", "evaluation/after.json"])
def test_a_damaged_file_is_named(whole, name):
    (whole / name).write_text("{[")
    with pytest.raises(InputError, match=re.escape(name)):
        write_report(whole)


@pytest.mark.heavy
def test_a_long_run_stays_small(tmp_path):
    rows = [{"step": step, **{f"metric{i}": math.cos(step * i) for i in range(40)}} for step in range(1, 4001)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = report(tmp_path)
    assert len(page.charts) == 40 and all(len(chart["x"]) == 400 for chart in page.charts.values())


@pytest.mark.heavy
def test_many_rollout_files_are_counted_in_equal_spaces_up_to_the_last(tmp_path):
    for step in range(1, 603):
        rollouts(tmp_path, step)
    title = next(iter(report(tmp_path).charts))
    assert title == "Verdicts on training completions (1 step in 3)", "said so"
    assert "Answers of the last training step" in (tmp_path / "report.html").read_text()
    assert "step 602" in report(tmp_path).text


@settings(deadline=None)
@example([5e-324])
@example([1e-300, 2e-12])
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50))
def test_axes_hold_their_values_between_round_ticks(values):
    axis = charts.value_axis(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) and max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 7 and axis.ticks[0] == pytest.approx(axis.low)
    assert all(-1e-9 <= axis.place(tick) <= 1 + 1e-9 for tick in axis.ticks)


@given(st.lists(st.none() | st.floats(-5, 5), max_size=200))
def test_a_running_mean_stays_within_its_values(values):
    smooth = charts.running_mean(values)
    assert [value is None for value in smooth] == [value is None for value in values]
    known = [value for value in values if value is not None]
    assert all(min(known) - 1e-9 <= value <= max(known) + 1e-9 for value in smooth if value is not None)


def test_a_run_without_steps_shows_its_numbers(tmp_path):
    (tmp_path / "config.yaml").write_text("stage: verify\nseed: 0\n")
    rate = {"value": 0.25, "low": 0.1, "high": 0.4, "n": 40, "samples": 1}
    numbers = {"bucket/timeout": 1234, "ratio/python_io": {"value": 8.75, "low": 7.5, "high": 10.0, "n": 5}}
    summary = {"stage": "verify", "status": "completed", "before": {}, "after": {"passed": rate}, "metrics": numbers}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    page = report(tmp_path)
    assert ("td", "1,234") in page.texts and ("td", "8.75 [7.5, 10]") in page.texts
    assert "40 tasks. Ranges" in page.text and "Held out" not in page.text
