"""The interval without a statistics library equals that of a statistics library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlvr_exp.evaluation.verdict_counter import VerdictCounter
from rlvr_exp.evaluation.wilson import wilson


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_is_the_interval_that_scipy_gives(drawn):
    count, n = drawn
    expected = stats.binomtest(count, n).proportion_ci(0.95, method="wilson")
    rate = wilson(count, n)
    assert (rate["low"], rate["high"]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert rate["low"] <= rate["value"] == count / n <= rate["high"] and rate["n"] == n


@pytest.mark.parametrize(("count", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_impossible_counts_are_refused(count, n):
    with pytest.raises(ValueError, match="wilson"):
        wilson(count, n)


def row(outcome, bucket=None, rule=None):
    return {"outcome": outcome, "bucket": bucket, "rule": rule, "seconds": 0.5}


def test_a_tally_counts_outcomes_with_their_reasons():
    tally = VerdictCounter()
    for one in [
        row("passed"),
        row("failed", "parse"),
        row("failed", "parse"),
        row("failed", "timeout"),
        row("no_verdict"),
    ]:
        tally.add(one)
    tally.add(row("rejected", rule="spec-changed"))
    assert tally.text() == "6 rows: 1 passed, 3 failed (parse 2, timeout 1), 1 rejected (spec-changed 1), 1 no_verdict"
    assert tally.metrics() == {
        **{"rows": 6, "outcome/passed": 1, "outcome/failed": 3, "outcome/rejected": 1, "outcome/no_verdict": 1},
        **{"bucket/parse": 2, "bucket/timeout": 1, "rule/spec-changed": 1, "time/candidates_cpu": 3.0},
    }
    assert tally.passed()["passed"] == wilson(1, 5), "what has no verdict is in no rate"


def test_nothing_judged_has_no_rate():
    tally = VerdictCounter()
    tally.add(row("no_verdict"))
    assert tally.passed() == {} and VerdictCounter().text() == "0 rows: none"
