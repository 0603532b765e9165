"""Answers in stages of reasoning, as HTML: outputs and critiques side by side, tests against all programs."""

import json
from types import SimpleNamespace

from problem_row import row, sample
from report_pages import HOSTILE, Page

from rlvr_exp.report.answers import answers_section, beside_answer, worked_out


def test_a_critique_stands_in_the_row_of_its_stage() -> None:
    found = worked_out(row())
    assert "<tr><th></th><th>solver</th><th>tester</th></tr>" in found
    assert "<th>plan</th><td><pre>1. take x\n2. return it</pre></td><td>wrong: its sign</td>" in found
    assert "tester" not in worked_out(row(critiques={}))


def test_tests_have_a_column_for_each_program() -> None:
    found = worked_out(
        row(sample=1, samples=[sample("failed", pass_rate=0.5), sample("passed"), sample(None, None, None)])
    )
    assert "<th>sample 1</th><th>sample 2, chosen</th><th>sample 3</th>" in found
    valid, invalid = (
        found.partition(f"<code>{name}</code>")[2].partition("</tr>")[0] for name in ("f(2) == 2", "f(2) == 9")
    )
    assert ">valid<" in valid and valid.endswith(
        '<td>passes</td><td><span class="down">caught</span></td><td>passes</td>'
    )
    assert ">invalid<" in invalid and "caught" not in invalid and "passes" not in invalid
    assert "<th>valid tests passed</th><td></td><td></td><td>50%</td><td>100%</td><td>\N{EN DASH}</td>" in found
    assert "<td>failed</td><td>passed</td><td>not run</td></tr>" in found


def test_sets_without_a_test_are_shown_as_written() -> None:
    found = worked_out(row(written=["f(2) == 2", "f(0) == 0", "no & test"]))
    assert "1 sets without a test" in found and "<pre>no &amp; test</pre>" in found
    assert "without a test" not in worked_out(row())


def test_beside_an_evaluated_answer_stand_the_earlier_stages_and_the_tests() -> None:
    found = beside_answer(
        {"stages": {"plan": "1. do", "code": "x"}, "tests": "f(1) == 1", "validity": 1.0, "pass_rate": 0.0}
    )
    assert "<pre>1. do</pre>" in found and "<th>code</th>" not in found
    assert "valid 100%, passed by this answer 0%" in found and "<pre>f(1) == 1</pre>" in found
    assert beside_answer({"stages": {"code": "x"}}) == "" == beside_answer({"writer": "x"})


def test_nothing_of_an_answer_is_markup() -> None:
    hostile = row(
        stages={HOSTILE: HOSTILE},
        critiques={HOSTILE: HOSTILE},
        written=[HOSTILE] * 3,
        tests=[{"text": HOSTILE, "set": 0, "valid": True, "catches": []}],
    )
    page = worked_out(hostile) + beside_answer({"stages": {HOSTILE: HOSTILE, "b": ""}, "tests": HOSTILE})
    assert not {tag for tag, _ in Page(page).tags} & {"script", "img"}


def test_the_answers_of_a_run_show_it(tmp_path) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps(row("one")) + "\n")
    manifest = {"output": str(tmp_path / "answers.jsonl")}
    run = SimpleNamespace(directory=tmp_path, config={"stage": "infer"}, manifest=manifest)
    assert "<b>one</b>" in answers_section(run) and "wrong: its sign" in answers_section(run)
