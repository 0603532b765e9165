"""Solutions as text for a person, and the rates of many."""

from dataclasses import replace

import pytest

from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.inference.solution import Solution, Summary, readable
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict


def row(**changes):
    return {
        "id": "t", "text": "text", "program": "x = 1\n", "formatted": None, "fault": "", "outcome": "passed", "bucket": None, "rule": None,
        "score": 1.0, "passed": 1, "total": 1, "log": "", "attempt": 1, "attempts": 1, "sample": 0, "tokens": 9,
        "logprob": -2.0, "truncated": False, "earlier": [],
    } | changes  # fmt: skip


def failed(**changes):
    return row(outcome="failed", bucket="wrong_answer", score=0.5, log="case 1: got 2\nmore", **changes)


def test_an_answer_reads_well():
    assert readable(row()) == "t: passed, score 1.00, 9 tokens, log-probability -2.00\n    x = 1"
    told = readable(failed(attempts=3, attempt=2)).splitlines()
    assert told[0].startswith("t: failed (wrong_answer), score 0.50, attempt 2 of 3")
    assert told[-1] == "    -> case 1: got 2"


def test_the_program_that_passed_is_the_answer_if_the_verifier_revised_it():
    given = Completion(
        Task("t", "f", 0, None, None), 0, TokenCount(3, False), "text", Candidate("x"),
        Verdict("passed", revised="y", log="pruned: assert x; invariant y"),
    )  # fmt: skip
    found = Solution("t", given, 1, 1, True)
    assert found.program == "y" and found.row()["program"] == "y" and found.row()["text"] == "text"
    assert readable(found.row()).endswith("    -> pruned: assert x; invariant y")
    assert replace(found, completion=replace(given, verdict=Verdict("passed"))).program == "x"


def test_a_layout_is_shown_in_the_place_of_the_program():
    assert readable(row(program="x=1", formatted="x = 1\n")).endswith("\n    x = 1")


def test_without_a_program_the_text_is_shown_with_what_is_wrong():
    told = readable(row(program=None, outcome=None, score=None, fault="line 1: invalid syntax"))
    assert "not judged" in told and "    text" in told and "-> line 1: invalid syntax" in told


def test_a_long_program_is_cut():
    assert "[60 more lines]" in readable(row(program="x = 1\n" * 100))


def counted(*rows):
    counts = Summary()
    for one in rows:
        counts.add(one)
    return counts


def test_success_is_told_by_attempt():
    rates = counted(row(), row(attempt=3, attempts=3), failed(attempts=3), row(outcome="no_verdict")).rates(3, 2)
    values = {name: (rate.value, rate.n, rate.samples) for name, rate in rates.items()}
    assert values == {
        "pass_at_attempt_1": (pytest.approx(1 / 3), 3, 2),
        "pass_at_attempt_2": (pytest.approx(1 / 3), 3, 2),
        "pass_at_attempt_3": (pytest.approx(2 / 3), 3, 2),
    }


def test_nothing_judged_gives_no_rate():
    counts = counted(row(outcome=None, score=None), row(outcome="no_verdict"))
    assert counts.rates(2, 1) == {} and counts.metrics()["outcome/not_judged"] == 1


def test_counts_add_up():
    counts = counted(row(), failed(), failed(fault="line 1: x"))
    metrics = counts.metrics()
    assert metrics["tasks"] == 3 == metrics["outcome/passed"] + metrics["outcome/failed"]
    assert metrics["reason/wrong_answer"] == 2 and metrics["syntax_faults"] == 1
    assert counts.text() == "3 tasks: 2 failed, 1 passed; wrong_answer 2"


def voted(solved_with, *answers):
    told = [{"output": [[one]], "votes": 3, "shown_right": 0.5, "weight": 503.0, "program": "x"} for one in answers]
    return {"voted": {"answers": [told], "solved_with": solved_with}}


def test_each_voted_answer_has_a_line():
    assert readable(row(**voted(None, 7, 8))).splitlines()[2:] == [
        "    held-back input 1, answer 1 (votes: 3, shown pairs right: 50%): [[7]]",
        "    held-back input 1, answer 2 (votes: 3, shown pairs right: 50%): [[8]]",
    ]


def test_votes_are_rated_where_the_outputs_are_known():
    counts = counted(row(**voted(1)), row(**voted(2)), row(**voted(0)), row(**voted(None)), row(voted=None))
    rates = counts.rates(1, 8, ("voted_at_8", "voted_at_8_top_2"))
    assert {name: (rate.value, rate.n, rate.samples) for name, rate in rates.items() if "voted" in name} == {
        "voted_at_8": (pytest.approx(1 / 3), 3, 8),
        "voted_at_8_top_2": (pytest.approx(2 / 3), 3, 8),
    }
    assert "voted_at_8" not in counted(row(**voted(None))).rates(1, 8, ("voted_at_8",))
