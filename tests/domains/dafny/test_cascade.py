"""A cascade: the requests of each role, the role at fault, the feedback of a retry, the groups and the credit of a step."""

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
    collector,
    domain,
    episode,
    failed,
    runner,
    tasks_of,
)
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.cascade import Cascade, Widths, counterfactual, failed_by, failure, mean, shared
from rlvr_exp.domains.dafny.options import ROLES
from rlvr_exp.domains.dafny.tasks import DafnyDomain, TwoStage
from rlvr_exp.episodes.types import PENDING, TRUNCATED
from rlvr_exp.inference.engine import Engine
from rlvr_exp.launch.inference_inputs import tasks_of_domain
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.engines.local import LocalEngine


@pytest.fixture
def two(tmp_path):
    return domain(tmp_path)


class Sampled:
    """One task with several bodies; `written` and `annotated`: (text, verdict) by their number, 10 more for each retry.
    `buckets`: of the judged bodies that do not fail with `verify`, by their text."""

    def __init__(self, two, written, annotated, attempts: int = 1, room: int = 10_000, buckets=None, **widths):
        def script(role, request, key):
            given = written if role == "writer" else annotated
            return given[key[6] + 10 * key[8]] if "again" in key else given[key[-1]]

        self.runner = runner(two, script, Widths(attempts=attempts, **widths), room=room)
        self.runner.verifier.buckets = buckets or {}
        self.environment, self.asked = self.runner.environment, self.runner.generate
        self.episode = episode(
            two,
            self.runner,
            range(len(written) if isinstance(written, list) else sum(number < 10 for number in written)),
        )
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


def test_a_body_that_cannot_be_annotated_is_written_again(two) -> None:
    written = {0: (NO_BODY, failed("parse")), 1: (GOOD, PASSED), 10: (ASSUMES, PENDING), 20: (LOOP, PASSED)}
    made = Sampled(two, written, [(PROVED, PASSED), (GOOD, PASSED)], attempts=3)
    asked = ["".join(map(chr, one.prompt)) for one in made.asked.of("writer")]
    assert [one.keys[0][-2:] for one in made.asked.of("writer")[1:]] == [("again", 1), ("again", 2)]
    assert "it says parse" in asked[1] and NO_BODY in asked[1] and "assume" in asked[2]
    assert [body.written for body in made.bodies] == [(0, 2, 3), (1,)]
    assert [made.who(place) for place in (0, 1)] == [(None, None)] * 2
    assert [turn.learn for turn in made.episode.turns] == [True, True, False, False, True, True]
    assert made.environment.groups(made.episode) == [[0, 1], [4], [5]]
    result = made.environment.result(Sampled(two, {0: written[0], 10: (LOOP, PASSED)}, [(PROVED, PASSED)], 2).episode)
    assert result.text == PROVED and result.tokens == sum(1 + len(text) % 5 for text in (NO_BODY, LOOP, PROVED))


@pytest.mark.parametrize(("bucket", "again"), [("resolve", True), ("parse", True), ("verify", False)])
def test_a_body_that_dafny_cannot_read_is_written_again_before_it_is_annotated(two, bucket, again) -> None:
    buckets = {two.writer.parse(WRONG, tasks_of(two)[0]).text: bucket}
    written = {0: (WRONG, PENDING), 10: (LOOP, PENDING)}
    made = Sampled(two, written, [(PROVED, PASSED)], attempts=2, buckets=buckets)
    assert len(made.asked.of("writer")) == 1 + again
    assert made.bodies[0].text == (LOOP if again else WRONG)
    assert made.environment.outcome(made.episode)["written"] == (LOOP if again else WRONG)


def test_the_writer_is_credited_with_the_cascade_of_its_last_attempt(two) -> None:
    def script(role, request, key):
        if role == "writer":
            return (LOOP, PASSED) if "again" in key else (NO_BODY, failed("parse"))
        return (PROVED, PASSED) if key[-1] == 0 else (LOOP, failed("verify"))

    found = collector(two, script, Widths(annotations=2, attempts=2)).collect(0).groups["writer"].batch[0]
    assert found.rewards == (0.5, 0.5, 0.5)
    assert [one.verdict.outcome for one in found.completions] == ["failed"] * 3, "a group has the first attempts"


def test_a_body_that_stays_faulty_is_the_writers_fault(two) -> None:
    made = Sampled(two, {0: (NO_BODY, failed("parse")), 10: (CUT_TEXT, TRUNCATED)}, [], attempts=2)
    assert made.who() == ("writer", "truncated") and not made.asked.of("annotator")
    assert [number for number, _ in made.environment.answers(made.episode)] == [1, 2]


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


BODIES = (LOOP, WRONG, LOOP)
TWO = Widths(annotations=2)


def script(role, request, key):
    """Bodies by their index; the first annotation of a loop proves it, no other does."""
    if role == "writer":
        body = BODIES[key[-1]]
        return body, PASSED if body == LOOP else failed("verify")
    body = request.task.inputs.example.body
    return (PROVED, PASSED) if body == LOOP and key[-1] == 0 else (body, failed("verify"))


def test_groups_of_each_role(two) -> None:
    found = collector(two, script, TWO).collect(0).groups
    writer, annotator = found["writer"], found["annotator"]
    assert [len(group.completions) for group in writer.batch] == [3, 3]
    assert [len(group.completions) for group in annotator.batch] == [2] * 4, "two different bodies of each task"
    assert [group.rewards for group in writer.batch] == [(0.5, 0.0, 0.5)] * 2
    assert [group.rewards for group in annotator.batch] == [(1.0, 0.0), (0.0, 0.0)] * 2
    assert annotator.zero_variance == {annotator.batch[i].id: "failed" for i in (1, 3)}
    assert [answer.verdict.outcome for answer in writer.batch[0].completions] == ["passed", "failed", "passed"]
    assert writer.seconds == {"generate": 1.0, "verify": 0.5} == annotator.seconds


def test_every_sample_depends_only_on_its_own_key(two) -> None:
    made = collector(two, script, TWO)
    made.collect(0), made.collect(1)
    asked = made.runner.generate.asked
    keys = [key for _, request in asked for key in request.keys]
    assert len(set(keys)) == len(keys) and all(key[:3] == (0, "rollout", role) for role, q in asked for key in q.keys)


def test_the_counterfactual_credit_by_the_gold_needs_no_annotator(two) -> None:
    found = collector(two, script, Widths(annotations=2, graft_all=True), counterfactual=True).collect(0)
    assert found.groups["writer"].batch[0].rewards == (0.5, -1.0, 0.5)


def test_the_counterfactual_credit_by_resampling_samples_annotations_that_no_role_trains_on(two) -> None:
    made = collector(two, script, Widths(annotations=2, resamples=4), counterfactual=True)
    found = made.collect(0)
    assert found.groups["writer"].batch[0].rewards == (0.125, -0.25, 0.125)
    drawn = [key for request in made.runner.generate.of("annotator") for key in request.keys]
    assert sum(key[2] == "counterfactual" for key in drawn) == 4 * 4
    assert [len(group.completions) for group in found.groups["annotator"].batch] == [2] * 4


def test_where_no_body_can_be_annotated_the_annotator_learns_on_golds(two) -> None:
    def none(role, request, key):
        return (NO_BODY, failed("parse")) if role == "writer" else (PROVED, PASSED)

    made = collector(two, none, TWO)
    found = made.collect(0)
    assert [len(group.completions) for group in found.groups["annotator"].batch] == [2, 2]
    row = made.environment.metrics(found.episodes)
    assert row["cascade/failed_by/writer"] == 1.0 and row["cascade/no_verdict"] == 0.0
    assert {about["role"] for group in found.groups["annotator"].batch for about in group.about} == {"annotator"}


def test_gold_bodies_need_no_writer(two) -> None:
    found = collector(two, script, TWO, gold=True).collect(0)
    assert set(found.groups) == {"annotator"}
    assert [len(group.completions) for group in found.groups["annotator"].batch] == [2, 2]


def test_rollouts_hold_both_texts_and_who_failed(two) -> None:
    found = collector(two, script, TWO).collect(0).groups
    about = found["annotator"].batch[1].about[0]
    assert (about["body"], about["written"], about["failed_by"], about["failure"]) == (
        WRONG,
        WRONG,
        "writer",
        "semantic",
    )
    first, second = found["writer"].batch[0].about[:2]
    assert first["proved"] == 1 and first["cascades"] == 2 and second["failed_by"] == "writer"


def test_it_resumes_from_its_state(two) -> None:
    whole, first = collector(two, script, TWO), collector(two, script, TWO)
    whole.collect(0)
    first.load_state_dict(whole.state_dict())
    assert first.collect(1) == whole.collect(1)
    with pytest.raises(InputError, match="other keys"):
        first.load_state_dict({})


def test_good_bodies_need_no_annotations(two) -> None:
    made = collector(two, lambda role, request, key: (GOOD, PASSED), TWO)
    found = made.collect(0)
    assert made.environment.metrics(found.episodes)["cascade/success/mean"] == pytest.approx(1.0)
    assert set(found.groups["writer"].zero_variance.values()) == {"solved"}


def test_a_gold_body_too_long_for_the_annotator_is_learned_from_by_nobody(two) -> None:
    made = collector(two, script, TWO, gold=True)
    made.runner.players["annotator"] = replace(made.runner.players["annotator"], max_prompt_tokens=10)
    found = made.collect(0)
    assert found.groups == {} and made.environment.metrics(found.episodes)["cascade/failed_by/writer"] == 1.0


@pytest.mark.parametrize("gold", [False, True])
def test_the_curriculum_observes_the_tasks_by_the_first_role_that_answers(two, gold) -> None:
    rollouts = collector(two, script, TWO, gold=gold).collect(0)
    role = "annotator" if gold else "writer"
    groups = rollouts.groups[role].sampled
    seen = [(one.task, one.samples, one.successes) for one in rollouts.observations]
    assert seen == [
        (
            group.completions[0].task.id,
            sum(one.verdict.outcome != "no_verdict" for one in group.completions),
            sum(one.correct for one in group.completions),
        )
        for group in groups
    ]
    picked = {episode.task.id for episode in rollouts.episodes}
    assert {task for task, _, _ in seen} == picked and any(count for _, count, _ in seen)


class Counting(LocalEngine):
    """Counts the completions that it draws."""

    drawn = 0

    def draw(self, *given):
        for one in super().draw(*given):
            self.drawn += 1
            yield one


def test_both_roles_are_sampled_by_the_given_engine() -> None:
    model = Model(embedded="tiny_dafny", dtype="float32", chat_template="never", max_completion_tokens=112)
    stages = TwoStage(DafnyDomain(role="writer"), DafnyDomain(role="annotator"))
    asks = tasks_of_domain(stages.writer.splits()["test"][:2], stages.writer)
    roles, engine = dict.fromkeys(ROLES, load_policy(model, 0)), Counting()
    solver = Engine(roles, Infer(verify=False), model, None, stages.writer, 0, engine, Cascade(stages, Widths()))
    assert len(list(solver.solve_all(asks))) == 2
    assert 2 < engine.drawn <= 4


rewards = st.floats(-1, 1) | st.none()
tasks = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(rewards, min_size=width, max_size=width), min_size=2, max_size=5)
)


@given(tasks)
def test_the_shared_credit_is_the_mean_of_a_bodys_cascades(task) -> None:
    for credit, own in zip(shared(task), task, strict=True):
        judged = [one for one in own if one is not None]
        assert credit == (pytest.approx(sum(judged) / len(judged)) if judged else None)


@given(tasks, st.floats(-2, 2))
def test_a_task_that_is_easier_for_all_credits_nobody(task, ease: float) -> None:
    easier = [[None if one is None else one + ease for one in own] for own in task]
    if sum(mean(own) is not None for own in task) < 2:
        return  # A single body has no other body to differ from.
    for before, after in zip(counterfactual(task), counterfactual(easier), strict=True):
        assert (before is None) == (after is None)
        assert before is None or after == pytest.approx(before, abs=1e-9)


@given(tasks)
def test_differences_are_those_from_the_other_bodies(task) -> None:
    values = [value for own in task if (value := mean(own)) is not None]
    credits = [credit for credit in counterfactual(task) if credit is not None]
    assert len(credits) == len(values)
    if len(values) > 1:
        scale = len(values) / (len(values) - 1)
        centred = [scale * (value - sum(values) / len(values)) for value in values]
        assert credits == pytest.approx(centred, abs=1e-9)


def test_missing_verdicts_enter_nothing() -> None:
    assert shared([[None, 1.0], [None, None]]) == [1.0, None]
    assert counterfactual([[1.0], [None], [0.0]]) == [1.0, None, -1.0]
