"""One step of a cascade: groups of both roles, equal bodies annotated once, credit by the caller's rule."""

import pytest
from fake_cascade import GOOD, LOOP, NO_BODY, PASSED, PROVED, WRONG, collector, domain, failed, scripted

from rlvr_exp.algorithms import credit_assignment
from rlvr_exp.core.errors import InputError

BODIES = (LOOP, WRONG, LOOP)


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


def shared(paid):
    return credit_assignment.shared(paid.cascades)


def difference(paid):
    return credit_assignment.counterfactual(paid.others)


def test_groups_of_each_role(two) -> None:
    with scripted(script):
        found = collector(two, shared).collect(0)
    writer, annotator = found.of("writer"), found.of("annotator")
    assert [len(group.completions) for group in writer.batch] == [3, 3]
    assert [len(group.completions) for group in annotator.batch] == [2] * 4, "two different bodies of each task"
    assert [group.rewards for group in writer.batch] == [(0.5, 0.0, 0.5)] * 2
    assert [group.rewards for group in annotator.batch] == [(1.0, 0.0), (0.0, 0.0)] * 2
    assert annotator.zero_variance == {annotator.batch[i].id: "failed" for i in (1, 3)}
    assert [answer.verdict.outcome for answer in writer.batch[0].completions] == ["passed", "failed", "passed"]


def test_every_sample_depends_only_on_its_own_key(two) -> None:
    asked: list = []
    with scripted(script, asked):
        made = collector(two, shared)
        made.collect(0), made.collect(1)
    keys = [key for _, request in asked for key in request.keys]
    assert len(set(keys)) == len(keys) and all(key[:3] == (0, "rollout", role) for role, q in asked for key in q.keys)


def test_the_counterfactual_credit_by_the_gold_needs_no_annotator(two) -> None:
    with scripted(script):
        found = collector(two, difference, credit="counterfactual").collect(0)
    assert found.of("writer").batch[0].rewards == (0.5, -1.0, 0.5)


def test_the_counterfactual_credit_by_resampling_samples_annotations_that_no_role_trains_on(two) -> None:
    asked: list = []
    with scripted(script, asked):
        made = collector(two, difference, credit="counterfactual", counterfactual="resampled", resamples=4)
        found = made.collect(0)
    assert found.of("writer").batch[0].rewards == (0.125, -0.25, 0.125)
    assert {len(request.keys) for _, request in asked if request.keys[0][2] == "counterfactual"} == {4}
    assert [len(group.completions) for group in found.of("annotator").batch] == [2] * 4


def test_where_no_body_can_be_annotated_the_annotator_learns_on_golds(two) -> None:
    def none(role, request, key):
        return (NO_BODY, failed("parse")) if role == "writer" else (PROVED, PASSED)

    with scripted(none):
        found = collector(two, shared).collect(0)
    assert [len(group.completions) for group in found.of("annotator").batch] == [2, 2]
    assert {one.failed_by for one in found.results} == {"writer"} and len(found.results) == 6
    assert {about["role"] for about in found.about["annotator"]} == {"annotator"}


def test_gold_bodies_need_no_writer(two) -> None:
    with scripted(script):
        found = collector(two, shared, mode="annotator_only", bodies="gold").collect(0)
    assert set(found.groups) == {"annotator"} and len(found.results) == 4


def test_rollouts_hold_both_texts_and_who_failed(two) -> None:
    with scripted(script):
        found = collector(two, shared).collect(0)
    for role, groups in found.groups.items():
        assert len(found.about[role]) == sum(len(group.completions) for group in groups.at_hand)
    about = found.about["annotator"][2]
    assert (about["body"], about["written"], about["failed_by"], about["failure"]) == (
        WRONG,
        WRONG,
        "writer",
        "semantic",
    )
    assert found.about["writer"][0]["proved"] == 1 and found.about["writer"][1]["failed_by"] == "writer"


def test_it_resumes_from_its_state(two) -> None:
    with scripted(script):
        whole, first = collector(two, shared), collector(two, shared)
        whole.collect(0)
        state = whole.state_dict()
        first.load_state_dict(state)
        assert first.collect(1).results == whole.collect(1).results
    with pytest.raises(InputError, match="other keys"):
        first.load_state_dict({})


def test_good_bodies_need_no_annotations(two) -> None:
    with scripted(lambda role, request, key: (GOOD, PASSED)):
        found = collector(two, shared).collect(0)
    assert {one.verdict.outcome for one in found.results} == {"passed"}
    assert found.of("writer").zero_variance and set(found.of("writer").zero_variance.values()) == {"solved"}
