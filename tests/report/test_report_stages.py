"""Pages of stages that do not train: each shows what its command is for, and none speaks of learning."""

import json
import shutil

import pytest
from report_pages import HOSTILE, Page, dom_after, log, report

from rlvr_exp.core.files import write_json
from rlvr_exp.report.page import as_html

TABLE = f"Old against new\n\n| old \\ new | passed |\n|---|---|\n| a \\| b | {HOSTILE.replace('|', '')} |\n"


def of_stage(folder, stage, summary=(), config="", manifest=()):
    (folder / "config.yaml").write_text(f"stage: {stage}\nseed: 0\n{config}")
    write_json(folder / "summary.json", {"stage": stage, "status": "completed", "seconds": 1.0, **dict(summary)})
    write_json(folder / "manifest.json", dict(manifest))
    return report(folder)


@pytest.mark.parametrize("stage", ["compare", "rescore", "validate", "solutions", "benchmark"])
def test_the_result_stands_on_the_page_as_tables_and_nothing_speaks_of_learning(tmp_path, stage):
    (tmp_path / f"{stage}.md").write_text(TABLE)
    rate = {"value": 0.25, "low": 0.1, "high": 0.4, "n": 40, "samples": 1}
    page = of_stage(tmp_path, stage, {"before": {"success": rate}, "after": {"success": rate}, "metrics": {"x": 1}})
    assert ("th", "old \\ new") in page.texts and ("th", "a | b") in page.texts
    assert ("td", HOSTILE) in page.texts and ("p", "Old against new") in page.texts
    spoken = page.text.lower()
    assert not [word for word in ("learn", "no problem", "before and after", "diagnosis") if word in spoken]


def test_lines_between_tables_stay_lines():
    html = as_html("step 1: 2 differ\n  group 0\n\n| | a |\n| --- | --- |\n| x | |\n\nend")
    assert html.count("<table>") == 1 and "step 1: 2 differ\n  group 0" in html and "<td></td>" in html
    assert as_html("") == ""


def test_a_comparison_draws_the_curves_of_its_runs(tmp_path):
    runs = [tmp_path / name for name in ("one/run", "two/run")]
    for steps, run in zip((40, 20), runs, strict=True):
        run.mkdir(parents=True)
        log(run, steps)
    page = of_stage(tmp_path, "compare", config=f"compare: {{runs: {json.dumps(list(map(str, runs)))}}}\n")
    curve = page.charts["Reward, all runs"]["series"]
    assert list(curve) == [str(run) for run in runs], "folders of one name go by their paths"
    assert curve[str(runs[1])][20:] == [None] * 20


def answer(identity, **more):
    row = dict.fromkeys(("formatted", "bucket", "rule", "log", "fault"), None) | {"id": identity, "text": "raw"}
    plain = {"program": f"def f_{identity}(): pass", "outcome": "passed", "passed": 2, "total": 4, "tokens": 9}
    return {**row, **plain, "attempt": 1, "attempts": 1, **more}


def test_the_page_of_an_inference_shows_its_answers(tmp_path):
    kept = tmp_path / "elsewhere.jsonl"
    wrong = answer("b", outcome="failed", bucket="wrong_answer", log=HOSTILE, attempt=2, attempts=3)
    silent = answer("c", outcome=None, program=None, text=None, passed=None, total=None)
    kept.write_text("".join(json.dumps(row) + "\n" for row in (answer("a"), wrong, silent)) + '{"id": "torn')
    page = of_stage(tmp_path, "infer", manifest={"output": str(kept), "input": {"source": "tasks.jsonl"}})
    assert "3 answers to tasks.jsonl" in page.text and ("pre", "def f_a(): pass") in page.texts
    assert ("small", "2 of 4, attempt 2 of 3, 9 tokens") in page.texts and ("pre", HOSTILE) in page.texts
    assert ("span", "not judged") in page.texts and ("pre", "(empty)") in page.texts
    kept.rename(tmp_path / "moved.jsonl")
    assert "Answers" not in report(tmp_path).text
    write_json(tmp_path / "manifest.json", {"output": "outputs/of/another/folder/moved.jsonl"})
    assert ("pre", "def f_a(): pass") in report(tmp_path).texts, "the run was moved"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
def test_no_table_of_rates_is_cut_at_1280_pixels(tmp_path):
    rate = {"value": 0.473, "low": 0.113, "high": 1.0, "n": 140, "samples": 8}
    change = {**rate, "value": -0.016, "low": -0.057, "won": 100, "lost": 100, "tied": 0}
    names = ["pass_at_1", "annotator/pass_at_1_greedy"]
    (tmp_path / "evaluation").mkdir()
    write_json(tmp_path / "evaluation" / "after.json", {"rates": {}, "change": dict.fromkeys(names, change)})
    of_stage(tmp_path, "cascade", {when: dict.fromkeys(names, rate) for when in ("before", "after")})
    over = dom_after(
        tmp_path, "[...document.querySelectorAll('.wide')].map(one => one.scrollWidth - one.clientWidth).join(' ')"
    ).split()
    assert over and set(over) == {"0"}, over


def test_the_first_screen_names_model_date_rate_and_batch(tmp_path):
    config = """model: {path: '', name: '', embedded: tiny_dafny}
roles: {writer: {model: {path: /models/w}}, tester: {model: {package: llm_some, embedded: tiny}}, annotator: {model: null}}
optimizer: {lr: 0.0004}
algorithm: {prompts_per_step: 24, group_size: 8}
"""
    page = of_stage(tmp_path, "grpo", config=config, manifest={"created": "2026-11-25T02:34:47+00:00"})
    shown = [text for tag, text in page.texts if tag in ("dt", "dd")]
    assert (
        dict(zip(shown[::2], shown[1::2], strict=True)).items()
        >= {
            "model": "tiny_dafny, writer: /models/w, tester: llm_some",
            "started": "2026-11-25 02:34",
            "learning rate": "0.0004",
            "batch": "24 prompts x 8",
        }.items()
    )
    (tmp_path / "config.yaml").write_text("stage: sft\nalgorithm: {batch_size: 64}\n")
    assert ("dd", "64 reference answers") in report(tmp_path).texts


def test_a_cascade_mixes_no_counters_into_its_charts_and_draws_no_failure_green(tmp_path):
    rows = []
    for step in (1, 2):
        row = {"step": step, "cascade/success/mean": 0.1, "cascade/failed_by/writer": 0.5}
        row |= {"cascade/failed_by/annotator": 0.4}
        for role in ("writer", "annotator"):
            row |= {f"{role}/{name}": 0.1 for name in ("reward/mean", "loss", "guard/reward", "guard/loss")}
        rows.append(json.dumps(row) + "\n")
    (tmp_path / "metrics.jsonl").write_text("".join(rows))
    page = of_stage(tmp_path, "cascade", config="cascade: {mode: joint, credit: shared}\n")
    assert list(page.charts["Reward"]["series"]) == ["writer/reward/mean", "annotator/reward/mean"]
    assert list(page.charts["Loss"]["series"]) == ["writer/loss", "annotator/loss"]
    chart = page.charts["Cascades: proved, and who failed"]
    colors = [path["class"].split()[-1] for path in chart["paths"] if path["class"].startswith("line")]
    assert dict(zip(chart["series"], colors, strict=True)) == {
        "proved": "c3", "failed by the writer": "c2", "failed by the annotator": "c6"
    }  # fmt: skip


def test_a_solver_and_a_tester_are_shown_with_the_gap_between_their_tests_and_the_hidden_ones(tmp_path):
    rows = []
    for step, role in enumerate(("tester", "tester", "solver"), 1):
        row = {"step": step, "adversarial/pass_rate": 0.6, "adversarial/hidden": 0.4, "adversarial/gap": 0.2}
        row |= {"adversarial/stage": 1.0, "adversarial/credit/solver": 0.6, "adversarial/credit_spread/solver": 0.5}
        rows.append(json.dumps({**row, f"{role}/loss": 0.1}) + "\n")
    (tmp_path / "metrics.jsonl").write_text("".join(rows))
    config = "schedule: {mode: n_n_k, alone: 2, alternating: 0}\nenvironment: {reward: gated}\n"
    page = of_stage(tmp_path, "adversarial", config=config)
    chart = page.charts["What programs pass"]
    assert chart["series"] == {"the tester's valid tests": [0.6] * 3, "the hidden tests": [0.4] * 3, "gap": [0.2] * 3}
    said = " ".join(text for _, text in page.texts)
    assert "2 steps of a role, 2 of the other, 0 in turn" in said
    assert "a role learned: solver 1, tester 2" in said and "solver, learns" in said
    assert "What programs pass" not in of_stage(tmp_path, "grpo").charts


def test_every_x_axis_says_what_it_counts(tmp_path):
    log(tmp_path)
    page = Page((tmp_path / "report.html").read_text()) if report(tmp_path) else None
    named = [text for (tag, text) in page.texts if tag == "span" and text == "step"]
    assert len(named) == len(page.charts) > 3
