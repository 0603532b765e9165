"""The sum of terms: order between right and wrong, switching off, missing verdicts, rejected weights."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from verified_samples import CORRECT, TOTAL, WRONG, failed, passed, rejected, unknown

from rlvr_exp.core.errors import InputError
from rlvr_exp.rewards.base import Term
from rlvr_exp.rewards.compose import Identity, Reward, RunningScale
from rlvr_exp.rewards.terms import AllPassed, CasesPassed, Length, Severity, Syntax

WEIGHTS = st.tuples(*[st.sampled_from([0.0]) | st.floats(-1, 2).map(lambda w: round(w, 3))] * 5)


def reward(cases=0.2, everything=1.0, syntax=0.05, length=0.05, severity=0.1, normalizer=None) -> Reward:
    terms = {
        "cases_passed": CasesPassed(cases),
        "all_passed": AllPassed(everything),
        "syntax": Syntax(syntax),
        "length": Length(length, 200),
        "severity": Severity(severity),
    }
    return Reward(terms, normalizer or Identity())


def total(reward: Reward, judged) -> float:
    return reward([judged])[0].total


@pytest.mark.property(15)
@given(WEIGHTS, CORRECT, WRONG)
def test_no_accepted_weights_let_a_wrong_answer_reach_a_correct_one(weights, correct, wrong):
    try:
        accepted = reward(*weights)
    except InputError:
        assume(False)
    assert total(accepted, correct) > total(accepted, wrong)


@pytest.mark.property(15)
@given(CORRECT)
def test_a_perfect_answer_gets_every_positive_term_in_full_but_length(correct):
    paid = reward()([correct])[0]
    assert paid.total == pytest.approx(0.2 + 1.0 + 0.05 + paid.terms["length"])


@pytest.mark.property(12)
@given(st.integers(0, TOTAL), st.integers(0, TOTAL), st.sampled_from(["wrong_answer", "runtime_error", "timeout"]))
def test_more_cases_passed_is_never_paid_less(one, other, bucket):
    low, high = sorted((one, other))
    assert total(reward(), failed(bucket, low)) <= total(reward(), failed(bucket, high))


@given(st.integers(0, 10_000), st.integers(0, 10_000), WRONG)
def test_shorter_correct_answers_earn_more_and_wrong_ones_never_do(one, other, wrong):
    short, long = sorted((one, other))
    assert total(reward(), passed(short)) >= total(reward(), passed(long)) > total(reward(), wrong)


def test_terms_sum_to_the_total():
    for paid in reward()([passed(), failed(share=3), rejected()]):
        assert paid.total == paid.sum == pytest.approx(math.fsum(paid.terms.values()))


def test_a_weight_of_zero_switches_a_term_off():
    class Touchy(Severity):
        def __call__(self, judged):
            raise RuntimeError("computed though switched off")

    terms = {"all_passed": AllPassed(1.0), "touchy": Touchy(0.0)}
    assert Reward(terms, Identity())([passed()])[0].terms == {"all_passed": 1.0}


def test_a_missing_verdict_is_paid_nothing_and_counted_nowhere():
    scale = RunningScale()
    first, missing, last = reward(normalizer=scale)([passed(), unknown(), failed()])
    assert (missing.total, missing.sum, missing.terms) == (None, None, {})
    assert first.total == pytest.approx(-last.total) and scale.metrics()["count"] == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_term_that_is_no_number_spoils_neither_the_others_nor_the_normaliser(value):
    class Broken(Severity):
        def __call__(self, judged):
            return value if judged.correct else 0.0

    scale = RunningScale()
    paid = Reward({"all_passed": AllPassed(1.0), "broken": Broken(0.1)}, scale)
    first, last = paid([passed(), failed()])
    assert (first.total, first.sum, first.terms) == (None, None, {}) and math.isfinite(last.total)
    assert scale.metrics()["count"] == 1
    (told,) = paid.pop_nonfinite()
    assert "broken=" in told and passed().task.id in told and paid.pop_nonfinite() == []


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"cases": 0, "everything": 0, "syntax": 1, "severity": 0, "length": 0}, "a wrong answer can earn"),
        ({"everything": -1}, "a wrong answer can earn"),
        ({"severity": -5}, "a wrong answer can earn"),
        ({"length": -2}, "a wrong answer can earn"),
        ({"length": 3}, "more than being correct gains"),
        ({"cases": 0, "everything": 0, "syntax": 0, "severity": 0, "length": 0}, "no term has a weight"),
        ({"everything": math.nan}, "not a finite number"),
        ({"cases": math.inf}, "not a finite number"),
    ],
)
def test_weights_that_would_teach_the_wrong_thing_are_refused(weights, said):
    with pytest.raises(InputError, match=said):
        reward(**weights)


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"cases": 1, "everything": 0, "syntax": 1, "length": 0, "severity": 0},
        {"cases": 0, "everything": 1, "syntax": 0, "length": 0, "severity": 0},
        {"everything": 1, "length": 1},
    ],
)
def test_sensible_weights_are_accepted(weights):
    assert all(term.weight for term in reward(**weights).terms.values()), "those of weight 0 are switched off"


class Undeclared(Term):
    """A term of a user's own that says nothing of its range."""

    weight = 1.0

    def __call__(self, completion) -> float:
        return 0.5


def test_a_term_without_ranges_is_refused_by_name():
    with pytest.raises(InputError, match="reward.terms.mine: declares no when_correct") as refused:
        Reward({"mine": Undeclared(), "all_passed": AllPassed(1.0)})
    assert len(refused.value.problems) == 2
