"""Counts of a file of verdicts, and the share that passed."""

from rlvr_exp.core.statistics import wilson
from rlvr_exp.records.resumable_jsonl import VerdictCounter


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
        "rows": 6,
        "outcome/passed": 1,
        "outcome/failed": 3,
        "outcome/rejected": 1,
        "outcome/no_verdict": 1,
        "bucket/parse": 2,
        "bucket/timeout": 1,
        "rule/spec-changed": 1,
        "time/candidates_cpu": 3.0,
    }
    rate = {**wilson(1, 5)._asdict(), "n": 5, "samples": 1}
    assert tally.passed()["passed"] == rate, "what has no verdict is in no rate"


def test_nothing_judged_has_no_rate():
    tally = VerdictCounter()
    tally.add(row("no_verdict"))
    assert tally.passed() == {} and VerdictCounter().text() == "0 rows: none"
