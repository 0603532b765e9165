"""The buffer of recent groups: its draws, its size and its state over a resume."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.ppo import ReplayBuffer
from rlvr_exp.core.errors import InputError
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.rewards.compose import RewardBreakdown
from rlvr_exp.rollouts.groups import Group
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict


def group(step: int, place: int) -> Group:
    sample = TokenSample((step, place, 3), (-0.5, -0.1, -1 / 3), truncated=False, kept_token_ids=((1, 2), (3,), (3, 4)))
    task = Task(f"task{place}", "f", math.nan, inputs=None, problem=None)
    completions = [
        Completion(task, 0, sample, "text", Candidate("x"), Verdict("passed")),
        Completion(task, 1, sample, "text", Candidate(None, "no fence"), Verdict("no_verdict", log="broke")),
    ]
    rewarded = (RewardBreakdown(1.0, 1.0, {"passed": 1.0}), RewardBreakdown(None, None, {}))
    return Group(step, place, ("prompt",) * 2, ((step, place),) * 2, tuple(completions), rewarded, (1.0, None))


def batch(step: int, groups: int = 3) -> list[Group]:
    return [group(step, place) for place in range(groups)]


def drawn(buffer: ReplayBuffer, steps: int) -> list[list[int]]:
    return [[one.id for one in buffer.exchange(step, batch(step))] for step in range(steps)]


@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 5))
def test_draws_are_of_the_last_batches_without_repeats(steps, prompts, seed):
    for step, ids in enumerate(drawn(ReplayBuffer(steps, prompts, seed), 6)):
        kept = [one.id for earlier in range(max(0, step - steps), step) for one in batch(earlier)]
        assert len(set(ids)) == len(ids) == min(prompts, len(kept))
        assert set(ids) <= set(kept)


def test_draws_depend_on_seed_and_step_alone():
    assert drawn(ReplayBuffer(3, 2, 0), 6) == drawn(ReplayBuffer(3, 2, 0), 6)
    assert drawn(ReplayBuffer(3, 2, 0), 6) != drawn(ReplayBuffer(3, 2, 1), 6)


def test_a_buffer_restored_from_json_continues_as_if_uninterrupted():
    through, stopped = ReplayBuffer(2, 2, 0), ReplayBuffer(2, 2, 0)
    drawn(through, 3), drawn(stopped, 3)
    again = ReplayBuffer(2, 2, 0)
    again.load_state_dict(json.loads(json.dumps(stopped.state_dict(), allow_nan=False)))
    assert again.metrics() == through.metrics() == {"groups": 6.0}
    for step in (3, 4):
        assert again.exchange(step, batch(step)) == through.exchange(step, batch(step))


@pytest.mark.parametrize("state", [{}, {"batches": [], "more": 1}, {"batches": [[{"id": 1}]]}])
def test_a_state_with_other_keys_is_refused(state):
    with pytest.raises(InputError, match="has other keys"):
        ReplayBuffer(1, 1, 0).load_state_dict(state)
