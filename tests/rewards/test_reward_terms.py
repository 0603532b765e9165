"""Each term's value, range and order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import CORRECT, TOKENS, TOTAL, WRONG, answer, failed, passed, rejected

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.rewards.terms import SEVERITY, AllPassed, CasesPassed, Length, Severity, Syntax
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
