"""Programs that prove false: Dafny's result for each, and that none of them passes as a candidate's text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dafny_judge import Judge

from rlvr_exp.domains.dafny import tool
from rlvr_exp.domains.dafny.issues import GOAL, OPTIONS, VERSION, Form, issues, stopped_by, table
from rlvr_exp.domains.dafny.tool import RunLimits, Runner

FORMS = [(one.number, form) for one in issues() for form in one.forms]
PROVING = [(number, form) for number, form in FORMS if form.proves]
WORDS = {
    "D": (),
    "R": tool.REFRESH,
    "RM": (*tool.REFRESH, "--manual-lemma-induction"),
    "T": tool.MANUAL_TRIGGERS,
}
FEW = ("dafny#6535", "dafny#1676", "dafny#2110", "dafny#4844")
"""Issues whose results are compared in every run of the tests."""


def names(forms: list[tuple[str, Form]]) -> list[str]:
    return [f"{number}, {form.name}" for number, form in forms]


@pytest.fixture(scope="module")
def runner(judge: Judge) -> Iterator[Runner]:
    with Runner(tool.find(), 20_000_000) as found:
        yield found


def accepts(runner: Runner, form: Form) -> set[str]:
    run = {one: runner.run(form.program, WORDS[one], RunLimits(120, 600, 2048), lambda: True) for one in OPTIONS}
    return {one for one in OPTIONS if run[one].verified}


def known(judge: Judge) -> None:
    if VERSION not in str(judge.verifier.tool()):
        pytest.skip(f"the results are those of Dafny {VERSION}")


@pytest.mark.parametrize(("number", "form"), FORMS, ids=names(FORMS))
def test_something_refuses_each_form_that_proves_false(number: str, form: Form) -> None:
    assert not form.proves or stopped_by(form)


@pytest.mark.parametrize(
    ("number", "form"),
    [
        pytest.param(number, form, id=f"{number}, {form.name}", marks=[] if number in FEW else [pytest.mark.slow])
        for number, form in FORMS
    ],
)
def test_dafny_accepts_each_form_with_the_recorded_options(
    judge: Judge, runner: Runner, number: str, form: Form
) -> None:
    known(judge)
    assert accepts(runner, form) == form.proves


@pytest.mark.parametrize(("number", "form"), PROVING, ids=names(PROVING))
def test_none_of_them_passes(judge: Judge, number: str, form: Form) -> None:
    assert judge(GOAL, form.program).outcome in ("failed", "rejected")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "form"), FORMS, ids=names(FORMS))
def test_no_form_passes_with_any_version(judge: Judge, number: str, form: Form) -> None:
    assert judge(GOAL, form.program).outcome != "passed"


def test_the_page_has_the_table() -> None:
    page = Path(__file__).parents[4] / "rlvr_exp" / "docs" / "dafny_issues.md"
    assert table() in page.read_text(encoding="utf-8")
