"""The reward terms: their values and ranges, for real completions."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import CORRECT, TOKENS, TOTAL, WRONG, answer, failed, passed, rejected

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.rewards.terms import SEVERITY, AllPassed, CasesPassed, CodeLength, Length, Severity, Syntax, length
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import BUCKETS, Verdict

TERMS = (CasesPassed(1.0), AllPassed(1.0), Syntax(1.0), Length(1.0, 50), Severity(1.0))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: type(term).__name__)
@given(CORRECT, WRONG)
def test_values_stay_in_their_spans(term, correct, wrong):
    for judged, span in ((correct, term.when_correct), (wrong, term.when_wrong)):
        value = term(judged)
        assert span.low <= value <= span.high and not (span.open_top and value == span.high)


@pytest.mark.property(12)
@given(st.integers(0, TOTAL - 1), st.floats(0.01, 10))
def test_cases_passed_is_proportional_to_the_pass_rate(share, weight):
    term = CasesPassed(weight)
    assert term(failed(share=share)) == pytest.approx(share / TOTAL)
    assert weight * term(failed(share=share)) <= weight * term(passed())


def test_a_failure_with_every_case_passed_earns_less_than_a_success():
    assert CasesPassed(1.0)(failed("output_limit", TOTAL)) < 1.0


@given(TOKENS, TOKENS)
def test_length_falls_strictly_with_tokens(one, other):
    term = Length(1.0, 200)
    assert (term(passed(one)) > term(passed(other))) == (one < other)


def test_length_is_one_half_just_below_its_scale():
    assert Length(1.0, 200)(passed(199)) == 0.5


@given(WRONG)
def test_length_pays_correct_answers_only(wrong):
    assert Length(1.0, 200)(wrong) == 0.0


def test_length_without_a_scale_is_refused():
    with pytest.raises(InputError, match="scale_tokens"):
        compose(["+stage=grpo", "reward.terms.length.scale_tokens=0"])


def test_severity_knows_every_bucket_and_orders_them():
    assert set(SEVERITY) == {*BUCKETS, "rejected"}
    ladder = ("rejected", "parse", "resolve", "runtime_error", "timeout", "wrong_answer")
    assert sorted(ladder, key=SEVERITY.get) == list(ladder)
    assert max(SEVERITY.values()) < 0 == Severity(1.0)(passed())
    assert Severity(1.0)(rejected()) == -1.0


@pytest.mark.parametrize(
    ("judged", "value"),
    [
        (passed(), 1.0),
        (failed("wrong_answer"), 1.0),
        (failed("timeout"), 1.0),
        (failed("parse"), 0.0),
        (failed("truncated"), 0.0),
        (answer(Verdict("failed", "parse", total=1), text=None), 0.0),
    ],
)
def test_syntax_is_what_the_verifier_could_parse(judged, value):
    assert Syntax(1.0)(judged) == value


LINES = st.lists(st.tuples(st.sampled_from(["x", "long_name", "y1"]), st.integers(0, 10**6)), min_size=1, max_size=6)
PROSE = st.text("ab #/*\n", max_size=30).map(lambda text: re.sub(r"\*+/", "", text))
TERM = CodeLength(1.0, 100)


def answered(code: str, around: str = "", tokens: int = 10, problem=None):
    task = replace(passed().task, problem=problem)
    text, sampled = around + code, TokenCount(tokens, False)
    return replace(passed(), task=task, text=text, candidate=Candidate(code), sampled=sampled)


def python(lines, comments=()) -> str:
    return "".join(f"{name} = {value}\n" for name, value in lines) + "".join(
        f"# {one}\n\n" for text in comments for one in text.splitlines()
    )


def dafny(lines, comments=()) -> str:
    body = "".join(f"  {name} := {value};\n" for name, value in lines)
    return body + "".join(f"/* {text} */\n" if text.count("/*") == 0 else "// gone\n" for text in comments)


WRITERS = [(python, None), (dafny, DafnyProblem("method m() {}"))]


@pytest.mark.property(16)
@pytest.mark.parametrize(("write", "problem"), WRITERS, ids=["python", "dafny"])
@given(LINES, LINES, st.lists(PROSE, max_size=2), st.lists(PROSE, max_size=2), PROSE, st.integers(1, 10_000))
def test_the_longer_code_never_earns_more(write, problem, one, other, comments, more, around, tokens):
    first = answered(write(one, comments), around, tokens, problem)
    second = answered(write(other, more), problem=problem)
    bare = [len("".join(write(lines).split())) for lines in (one, other)]
    assert [length(first), length(second)] == bare
    assert (TERM(first) > TERM(second)) == (bare[0] < bare[1]) and (TERM(first) == TERM(second)) == (bare[0] == bare[1])


@given(WRONG)
def test_it_pays_correct_answers_only(wrong):
    assert TERM(wrong) == 0.0


def test_its_value_is_one_half_just_below_its_scale_and_for_what_is_no_python_blanks_are_left_out():
    assert TERM(answered("x" * 99)) == 0.5
    assert length(answered("'''never  closed")) == len("'''neverclosed")
    assert length(answered('{"pattern": "a  b"}')) == len('{"pattern":"a  b"}')
