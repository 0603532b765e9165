"""Collecting: groups keep their ids, no accepted group is lost, groups of zero variance are replaced within a budget, and
a resumed run is the same as an uninterrupted run."""

import json
from collections import Counter

import pytest
from fake_world import collector, tasks
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import MODES, GroupFilter, Groups

STEPS = 7
plans = st.builds(
    BatchPlan,
    prompts_per_step=st.integers(1, 4),
    group_size=st.integers(2, 3),
    steps=st.just(STEPS),
    rollout_steps=st.integers(1, 3),
)
filters = st.builds(GroupFilter, mode=st.sampled_from(MODES), eps=st.just(1e-6), budget=st.integers(1, 4))


def walk(plan: BatchPlan, group_filter: GroupFilter, asked=None) -> list[Groups]:
    made = collector(asked or tasks(9, 9), plan, group_filter)
    return [made.collect(step).groups[POLICY] for step in range(STEPS)]


@settings(deadline=None, max_examples=tries(60))
@given(plans, filters)
def test_every_group_has_one_fate(plan, group_filter):
    walked = walk(plan, group_filter)
    sampled = Counter(group.id for groups in walked for group in groups.sampled)
    learned = Counter(group.id for groups in walked for group in groups.batch)
    waiting = {group.id for group in walked[-1].carried_over}
    assert set(sampled.values()) | set(learned.values()) == {1}, "no id twice, nothing learned from twice"
    dropped = set(sampled) - set(learned) - waiting
    assert set(learned) | waiting <= set(sampled) and not set(learned) & waiting
    assert dropped <= {group for groups in walked for group in groups.zero_variance}
    assert not dropped or group_filter.mode == "resample"


@settings(deadline=None, max_examples=tries(60))
@given(plans, filters)
def test_every_step_trains_on_a_complete_batch(plan, group_filter):
    for groups in walk(plan, group_filter):
        assert len(groups.batch) == plan.prompts_per_step
        assert all(len(group.completions) == plan.group_size for group in groups.batch)
        assert all(group.step <= groups.step for group in groups.batch)


@settings(deadline=None, max_examples=tries(60))
@given(plans, st.integers(1, 4))
def test_zero_variance_groups_fill_the_batch_only_where_the_budget_is_spent(plan, budget):
    for groups in walk(plan, GroupFilter("resample", 1e-6, budget)):
        most = budget * (plan.groups_needed(groups.step) - len(groups.carried_in)) if groups.sampled else 0
        assert len(groups.sampled) <= most
        dead = [group for group in groups.batch if group.id in groups.zero_variance]
        assert not dead or len(groups.sampled) == most
        assert not any(group.id in groups.zero_variance for group in groups.carried_over)


def test_a_generous_budget_finds_live_groups_for_all():
    walked = walk(BatchPlan(4, 3, STEPS), GroupFilter("resample", 1e-6, 100))
    assert not any(group.id in groups.zero_variance for groups in walked for group in groups.batch)
    assert any(groups.carried_over for groups in walked), "live groups beyond those needed wait"


def test_a_batch_serves_its_steps_and_none_is_sampled_ahead_for_steps_that_do_not_come():
    walked = walk(BatchPlan(2, 2, STEPS, rollout_steps=3), GroupFilter("keep", 1e-6))
    assert [len(groups.sampled) for groups in walked] == [6, 0, 0, 6, 0, 0, 2]
    assert [{group.step for group in groups.batch} for groups in walked] == [{0}, {0}, {0}, {3}, {3}, {3}, {6}]
    assert walked[-1].carried_over == ()


def test_consecutive_updates_on_the_same_samples_request_fewer_batches():
    assert BatchPlan(2, 2, steps=7, iterations=2, rollout_steps=3).groups_needed(4) == 2 * 2


@settings(deadline=None, max_examples=tries(40))
@given(plans, filters, st.integers(0, STEPS - 1))
def test_a_run_resumes_from_its_saved_state_bit_for_bit(plan, group_filter, stop):
    asked = tasks(9, 9)
    whole = walk(plan, group_filter, asked)
    first = collector(asked, plan, group_filter)
    for step in range(stop):
        first.collect(step)
    saved = json.loads(json.dumps(first.state_dict()))
    resumed = collector(asked, plan, group_filter)
    resumed.load_state_dict(saved)
    assert [resumed.collect(step).groups[POLICY] for step in range(stop, STEPS)] == whole[stop:]


@pytest.mark.parametrize("state", [{"asked": 0}, {"asked": 0, "waiting": [], "extra": 1}])
def test_a_state_with_other_keys_is_refused(state):
    made = collector(tasks(3, 3), BatchPlan(1, 2, 1), GroupFilter("keep", 1e-6))
    with pytest.raises(InputError, match="asked, waiting"):
        made.load_state_dict(state)


def test_a_waiting_group_whose_task_is_gone_is_refused():
    asked = tasks(9, 9)
    made = collector(asked, BatchPlan(1, 2, STEPS, rollout_steps=2), GroupFilter("keep", 1e-6))
    made.collect(0)
    again = collector(asked[:1], BatchPlan(1, 2, STEPS), GroupFilter("keep", 1e-6))
    with pytest.raises(InputError, match="gone"):
        again.load_state_dict(made.state_dict())


def test_tasks_of_one_prompt_are_different_groups():
    (groups, *_) = walk(BatchPlan(6, 2, STEPS), GroupFilter("keep", 1e-6), tasks(6, 2))
    assert len({text for group in groups.batch for text in group.prompts}) == 2
    assert len({group.id for group in groups.batch}) == 6
    assert all(len({answer.task.id for answer in group.completions}) == 1 for group in groups.batch)


def test_samples_depend_only_on_step_index_task_and_sample():
    """Further tasks come after the first tasks and change nothing about them."""
    plain = walk(BatchPlan(4, 3, STEPS), GroupFilter("keep", 1e-6))[0].sampled
    more = walk(BatchPlan(4, 3, STEPS), GroupFilter("resample", 1e-6, 3))[0].sampled
    assert len(more) > len(plain) and more[: len(plain)] == plain
