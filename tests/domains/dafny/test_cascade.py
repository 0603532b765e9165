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
    domain,
    episode,
    failed,
    runner,
    tasks_of,
)

from rlvr_exp.domains.dafny.cascade import Widths, failed_by, failure
from rlvr_exp.episodes.types import PENDING, TRUNCATED


@pytest.fixture
def two(tmp_path):
    return domain(tmp_path)


class Sampled:
    """One task with two bodies; `written` and `annotated`: (text, verdict) by their number, 10 more for a retry."""

    def __init__(self, two, written, annotated, attempts: int = 1, room: int = 10_000, **widths):
        def script(role, request, key):
            if role == "writer":
                return written[key[-1]]
            retry = key[-2] == "again"
            return annotated[key[6 if retry else -1] + 10 * retry]

        self.runner = runner(two, script, Widths(attempts=attempts, **widths), room=room)
        self.environment, self.asked = self.runner.environment, self.runner.generate
        self.episode = episode(two, self.runner, range(len(written)))
        self.bodies = self.environment.bodies(self.episode)

    def verdict(self, place: int = 0):
        body = self.bodies[place]
        return body.fault or self.episode.turns[body.chains[0][-1]].completion.verdict

    def who(self, place: int = 0):
        return failed_by(self.episode, self.bodies[place], 0), failure(self.verdict(place))


def test_a_proof_is_nobodys_failure(two) -> None:
    made = Sampled(two, [(LOOP, PASSED)], [(PROVED, PASSED)])
    assert made.verdict().outcome == "passed" and made.who() == (None, None)
    result, about = made.environment.result(made.episode), made.environment.outcome(made.episode)
    assert (about["written"], result.text, about["body"], about["body_proved"]) == (LOOP, PROVED, LOOP, True)
    assert result.seconds == 1.0 + 2.0, "the writer until its last token, the annotator until its proof"
    assert result.tokens == sum(turn.completion.tokens for turn in made.episode.turns)


def test_the_annotator_keeps_the_body_and_is_verified_against_the_hole(two) -> None:
    made = Sampled(two, [(GOOD, PASSED), (WRONG, failed("verify"))], [(GOOD, PASSED), (WRONG, failed("verify"))])
    requests = made.asked.of("annotator")
    problems = [request.task.problem for request in requests]
    assert [one.keep for one in problems] == [two.program(tasks_of(two)[0], body) for body in (GOOD, WRONG)]
    assert all(replace(one, keep=None) == tasks_of(two)[0].problem for one in problems)
    assert GOOD in "".join(map(chr, requests[0].prompt))


@pytest.mark.parametrize(
    ("alone", "verdict", "who", "kind"),
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
def test_whose_fault_a_failure_is(two, alone, verdict, who, kind) -> None:
    assert Sampled(two, [(WRONG, alone)], [(WRONG, verdict)]).who() == (who, kind)


def test_a_body_that_any_annotations_prove_is_not_at_fault(two) -> None:
    def script(role, request, key):
        if role == "writer":
            return LOOP, failed("verify")
        return (PROVED, PASSED) if key[-1] == 0 else (LOOP, failed("verify"))

    made = runner(two, script, Widths(annotations=2))
    done = episode(two, made)
    first, second = made.environment.bodies(done)
    assert second.chains == first.chains and not second.own, "equal bodies are annotated once"
    assert [failed_by(done, first, place) for place in (0, 1)] == [None, "annotator"]
    assert made.environment.shown(done, 1).verdict.outcome == "passed"
    assert done.turns[1].completion.verdict.outcome == "failed"


@pytest.mark.parametrize(
    ("text", "verdict", "kind"),
    [(NO_BODY, failed("parse"), "syntax"), (CUT_TEXT, TRUNCATED, "truncated"), (ASSUMES, PASSED, "rejected")],
)
def test_a_body_that_cannot_be_annotated_is_the_writers_fault_without_a_request(two, text, verdict, kind) -> None:
    made = Sampled(two, [(text, verdict)], [])
    assert made.who() == ("writer", kind) and made.bodies[0].chains == ()
    assert not made.asked.of("annotator")
    assert made.environment.result(made.episode).text == ""


def test_a_body_too_long_for_the_annotator_is_not_cut(two) -> None:
    made = Sampled(two, [(LOOP, PASSED)], [], room=60)
    assert made.verdict().bucket == "prompt_too_long" and made.who()[0] == "writer"


def test_a_retry_gets_the_feedback_of_the_first_attempt(two) -> None:
    annotated = {0: (LOOP, failed("verify")), 1: (PROVED, PASSED), 10: (PROVED, PASSED)}
    made = Sampled(two, [(LOOP, PASSED), (GOOD, PASSED)], annotated, attempts=2)
    again = [request for request in made.asked.of("annotator") if request.keys[0][-2] == "again"]
    assert [request.keys for request in again] == [((0, "rollout", "annotator", 0, 0, "twice0", 0, "again", 1),)]
    assert "it says verify" in "".join(map(chr, again[0].prompt))
    assert [len(body.chains[0]) for body in made.bodies] == [2, 1]
    assert [turn.learn for turn in made.episode.turns] == [True] * 4 + [False], (
        "the annotator learns from its first attempts"
    )
    assert made.who() == (None, None)


def test_a_retry_shows_the_proof_without_its_thoughts(two) -> None:
    annotated = {0: (f"<think>\nHm.\n</think>\n{LOOP}", failed("verify")), 10: (PROVED, PASSED)}
    made = Sampled(two, [(LOOP, PASSED)], annotated, attempts=2)
    (again,) = [request for request in made.asked.of("annotator") if request.keys[0][-2] == "again"]
    assert "Hm." not in "".join(map(chr, again.prompt))


def test_a_retry_whose_prompt_is_too_long_is_left_out(two) -> None:
    made = Sampled(two, [(LOOP, PASSED)], [(LOOP, failed("verify"))], attempts=3, room=330)
    first = made.asked.of("annotator")[0]
    assert len(first.prompt) <= 330 and len(made.asked.of("annotator")) == 1
    assert len(made.bodies[0].chains[0]) == 1 and made.who() == ("annotator", "semantic")


def test_without_a_writer_the_golds_body_is_annotated(two) -> None:
    made = runner(two, lambda role, request, key: (PROVED, PASSED), Widths(annotations=2))
    done = episode(two, made, samples=())
    (body,) = made.environment.bodies(done)
    assert (body.text, body.turn, len(body.chains)) == (LOOP, None, 2)
    assert [failed_by(done, body, place) for place in (0, 1)] == [None, None]


@pytest.mark.parametrize(("every", "judged"), [(False, [GOOD]), (True, [LOOP, GOOD])])
def test_a_proved_body_needs_no_gold_unless_its_reward_does(two, every, judged) -> None:
    written = [(LOOP, PENDING), (GOOD, PENDING), (ASSUMES, PENDING)]
    made = Sampled(two, written, [(PROVED, PASSED), (GOOD, failed("verify"))], graft_all=every)
    task = tasks_of(two)[0]
    assert made.runner.verifier.asked == [two.writer.parse(text, task).text for text in judged]
    assert [body.proved for body in made.bodies] == [True, False, False]
    shown = [made.environment.shown(made.episode, place).verdict.outcome for place in range(3)]
    assert shown == ["passed", "failed", "rejected"]
    assert [made.who(place)[0] for place in range(3)] == [None, "writer", "writer"]
