"""One step of a cascade: groups of both roles, equal bodies annotated once, the credit of each role."""

from dataclasses import replace

import pytest
from fake_cascade import GOOD, LOOP, NO_BODY, PASSED, PROVED, WRONG, collector, domain, failed

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.cascade import Widths

BODIES = (LOOP, WRONG, LOOP)
TWO = Widths(annotations=2)


@pytest.fixture
def two(tmp_path):
    return domain(tmp_path)


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
