"""Collecting for a curriculum with memory: what it is shown, when, and that both resume together bit for bit."""

import json
from collections.abc import Callable

import pytest
from fake_world import collector, tasks
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.curriculum.base import Curriculum, Observation, Uniform
from rlvr_exp.curriculum.difficulty_bands import Manual, Staged
from rlvr_exp.curriculum.success_rate import Band, Families, Learnability
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.rollouts.collect import BatchPlan, Collector
from rlvr_exp.rollouts.groups import GroupFilter
from rlvr_exp.stages.reinforcement import teaching

TASKS = tasks(12, 12)
STEPS = 6
RESAMPLE, KEEP = GroupFilter("resample", 1e-6, 3), GroupFilter("keep", 1e-6)
KINDS: dict[str, Callable[[], Curriculum]] = {
    "staged": lambda: Staged(TASKS, 0, bands=3, window=2, threshold=0.0, earlier=0.5),
    "manual": lambda: Manual(TASKS, 0, cuts=[0.0, 0.5], steps=[1, 4]),
    "learnability": lambda: Learnability(TASKS, 0),
    "families": lambda: Families(TASKS, 0),
    "band": lambda: Band(TASKS, 0, size=4, least_samples=3),
}


class Watched(Uniform):
    """Keeps the order of its calls."""

    def __init__(self, *given):
        super().__init__(*given)
        self.calls: list = []

    def begin(self, step):
        self.calls.append(("begin", step))

    def pick(self, offset, count):
        self.calls.append(("pick", count))
        return super().pick(offset, count)

    def observe(self, rollouts):
        self.calls.append(rollouts)


def collecting(curriculum: Curriculum, group_filter: GroupFilter = RESAMPLE, **plan) -> Collector:
    return collector(TASKS, BatchPlan(3, 3, STEPS, **plan), group_filter, curriculum=curriculum)


def test_it_is_shown_every_group_of_a_step_once():
    watched = Watched(TASKS, 0)
    rollouts = collecting(watched).collect(0)
    groups = rollouts.groups[POLICY]
    picks, (shown,) = [one for one in watched.calls[1:] if one[0] == "pick"], watched.calls[-1:]
    assert watched.calls[0] == ("begin", 0) and len(picks) > 1, "it picks again where groups are alike"
    assert shown == rollouts.observations and len(shown) == len(groups.sampled) == sum(count for _, count in picks)
    for one, group in zip(shown, groups.sampled, strict=True):
        outcomes = [answer.verdict.outcome for answer in group.completions]
        judged = [outcome for outcome in outcomes if outcome != "no_verdict"]
        solved = judged.count("passed")
        assert one == Observation(group.completions[0].task.id, solved, len(judged), 0 < solved < len(judged))


def test_it_is_shown_nothing_in_a_step_that_samples_nothing():
    watched = Watched(TASKS, 0)
    made = collecting(watched, KEEP, rollout_steps=2)
    made.collect(0)
    before = len(watched.calls)
    assert not made.collect(1).observations and watched.calls[before:] == [("begin", 1)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=tries(15))
@given(st.integers(0, STEPS), st.integers(1, 2), st.sampled_from([RESAMPLE, KEEP]))
def test_a_resumed_collection_is_that_of_one_that_never_stopped(kind, stop, rollout_steps, group_filter):
    def collected(made, first, last):
        return [(made.collect(step), made.curriculum.metrics()) for step in range(first, last)]

    plan = {"rollout_steps": rollout_steps}
    whole = collected(collecting(KINDS[kind](), group_filter, **plan), 0, STEPS)
    first = collecting(KINDS[kind](), group_filter, **plan)
    collected(first, 0, stop)
    saved = json.loads(json.dumps({name: part.state_dict() for name, part in first.parts.items()}))
    resumed = collecting(KINDS[kind](), group_filter, **plan)
    assert saved.keys() == resumed.parts.keys() >= {"collector", "curriculum"}
    for name, part in resumed.parts.items():
        part.load_state_dict(saved[name])
    assert collected(resumed, stop, STEPS) == whole[stop:]


def test_one_without_memory_is_no_part_of_a_checkpoint():
    assert "curriculum" not in collecting(Uniform(TASKS, 0)).parts


def test_metrics_of_what_teaches():
    rows = [Observation("a", 1, 2, True), Observation("a", 1, 2, True), Observation("b", 2, 2, False)]
    assert teaching([*rows, Observation("c", 0, 0, False)]) == {
        "curriculum/mixed_groups": 0.5,
        "curriculum/effective_prompts": 1.0,
    }
    assert teaching([]) == {}
