"""A cascade: the requests of each role, the role at fault for a failure, the feedback of a retry."""

from dataclasses import replace

import pytest
from fake_cascade import (
    ASSUMES,
    CUT_TEXT,
    GOOD,
    LOOP,
    NO_BODY,
    PASSED,
    PROVED,
    WRONG,
    cascade,
    domain,
    failed,
    on_written,
    scripted,
    tasks_of,
)

from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.rollouts.cascade import CascadeRequest, cascade_sample
from rlvr_exp.rollouts.rollout_loop import PENDING

KEYS = {"writer": (("w", 0), ("w", 1)), "annotator": ((("a", 0),), (("a", 1),))}


@pytest.fixture
def two(tmp_path):
    return domain(tmp_path)


def sampled(two, written, annotated, attempts: int = 1, asked=None, room: int = 10_000):
    """One task; `written` and `annotated`: (text, verdict) of each key, by its number."""

    def script(role, request, key):
        place = key[1]
        if role == "annotator" and key[2:3] == ("again",):
            place += 10
        return (written if role == "writer" else annotated)[place]

    with scripted(script, asked):
        wanted = CascadeRequest(tasks_of(two)[0], KEYS["writer"], KEYS["annotator"])
        return cascade_sample(cascade(two, attempts, room), [wanted])[0]


def test_a_proof_is_nobodys_failure(two) -> None:
    made = sampled(two, [(LOOP, PASSED)] * 2, [(PROVED, PASSED)] * 2)
    (one,) = made.results(0)
    assert (one.verdict.outcome, one.failed_by, one.failure, one.bucket) == ("passed", None, None, None)
    assert (one.writer_text, one.annotator_text, one.body) == (LOOP, PROVED, LOOP)
    assert one.seconds == {"writer": 1.0, "annotator": 2.0}


def test_the_annotator_keeps_the_body_and_is_verified_against_the_hole(two) -> None:
    asked: list = []
    sampled(two, [(GOOD, PASSED), (WRONG, failed("verify"))], [(GOOD, PASSED), (WRONG, failed("verify"))], asked=asked)
    requests = [request for role, request in asked if role == "annotator"]
    problems = [request.task.problem for request in requests]
    assert [one.keep for one in problems] == [two.program(tasks_of(two)[0], body) for body in (GOOD, WRONG)]
    assert all(replace(one, keep=None) == tasks_of(two)[0].problem for one in problems)
    assert GOOD in "".join(map(chr, requests[0].prompt)) and all(on_written(request) for request in requests)


@pytest.mark.parametrize(
    ("alone", "verdict", "who", "failure"),
    [
        (PASSED, failed("verify"), "annotator", "semantic"),
        (PASSED, failed("timeout"), "annotator", "timeout"),
        (failed("verify"), failed("verify"), "writer", "semantic"),
        (failed("timeout"), failed("timeout"), "writer", "timeout"),
        (failed("verify"), failed("resolve"), "annotator", "syntax"),
        (failed("resolve"), failed("resolve"), "writer", "syntax"),
        (failed("parse"), failed("parse"), "writer", "syntax"),
        (failed("verify"), TRUNCATED, "annotator", "truncated"),
        (failed("parse"), TRUNCATED, "writer", "truncated"),
    ],
)
def test_whose_fault_a_failure_is(two, alone, verdict, who, failure) -> None:
    made = sampled(two, [(WRONG, alone)] * 2, [(WRONG, verdict)] * 2)
    assert [(one.failed_by, one.failure) for one in made.results(0)] == [(who, failure)]


def test_a_body_that_any_annotations_prove_is_not_at_fault(two) -> None:
    made = sampled(two, [(LOOP, failed("verify"))] * 2, [(PROVED, PASSED), (LOOP, failed("verify"))])
    assert [one.failed_by for place in (0, 1) for one in made.results(place)] == [None, "annotator"]
    assert made.alone(1, proved=True).verdict.outcome == "passed" and made.alone(1).verdict.outcome == "failed"


@pytest.mark.parametrize(
    ("text", "verdict", "failure"),
    [(NO_BODY, failed("parse"), "syntax"), (CUT_TEXT, TRUNCATED, "truncated"), (ASSUMES, PASSED, "rejected")],
)
def test_a_body_that_cannot_be_annotated_is_the_writers_fault_without_a_request(two, text, verdict, failure) -> None:
    asked: list = []
    made = sampled(two, [(text, verdict)] * 2, [], asked=asked)
    (one,) = made.results(0)
    assert (one.failed_by, one.failure, one.annotated) == ("writer", failure, ())
    assert [role for role, _ in asked] == ["writer"]


def test_a_body_too_long_for_the_annotator_is_not_cut(two) -> None:
    made = sampled(two, [(LOOP, PASSED)] * 2, [], room=60)
    assert {one.verdict.bucket for one in made.results(0)} == {"prompt_too_long"}


def test_a_retry_gets_the_feedback_of_the_first_attempt(two) -> None:
    asked: list = []
    annotated = {0: (LOOP, failed("verify")), 1: (PROVED, PASSED), 10: (PROVED, PASSED)}
    made = sampled(two, [(LOOP, PASSED)] * 2, annotated, attempts=2, asked=asked)
    again = [request for role, request in asked if request.keys[0][2:3] == ("again",)]
    assert [request.keys for request in again] == [((*KEYS["annotator"][0][0], "again", 1),)]
    assert "it says verify" in "".join(map(chr, again[0].prompt))
    assert [len(one.annotated) for place in (0, 1) for one in made.results(place)] == [2, 1]
    assert [one.verdict.outcome for one in made.results(0)] == ["passed"]


def test_without_a_writer_the_golds_body_is_annotated(two) -> None:
    with scripted(lambda role, request, key: (PROVED, PASSED)):
        made = cascade_sample(cascade(two), [CascadeRequest(tasks_of(two)[0], (), ((("a", 0), ("a", 1)),))])[0]
    assert [(one.body, one.written, one.failed_by) for one in made.results(0)] == [(LOOP, None, None)] * 2


class Recorder:
    """Proves nothing, and records its requests."""

    def __init__(self):
        self.asked: list[str] = []

    def verify(self, requests):
        self.asked += [one.candidate.text for one in requests]
        return [failed("verify")] * len(requests)


@pytest.mark.parametrize(("every", "judged"), [(False, [GOOD]), (True, [LOOP, GOOD])])
def test_a_proved_body_needs_no_gold_unless_its_reward_does(two, every, judged) -> None:
    task, recorder = tasks_of(two)[0], Recorder()
    texts = {"writer": [LOOP, GOOD, ASSUMES], "annotator": [(PROVED, PASSED), (GOOD, failed("verify"))]}

    def script(role, request, key):
        return texts[role][key[1]] if role == "annotator" else (texts[role][key[1]], PENDING)

    keys = {role: tuple((role, i) for i in range(3)) for role in texts}
    wanted = CascadeRequest(task, keys["writer"], tuple((key,) for key in keys["annotator"]))
    with scripted(script):
        made = cascade_sample(replace(cascade(two), verifier=recorder, graft_all=every), [wanted])[0]
    programs = [two.writer.parse(text, task).text for text in judged + [ASSUMES] * every]
    assert recorder.asked == programs
    assert [made.proved(i) for i in range(3)] == [True, False, False]
    outcomes = [one.verdict.outcome for one in made.written]
    assert outcomes == (["failed"] * 3 if every else ["passed", "failed", "rejected"])
    assert [made.results(i)[0].failed_by for i in range(3)] == [None, "writer", "writer"]
