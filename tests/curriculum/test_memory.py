"""What holds for every curriculum with memory: it resumes exactly, never repeats a task while others are there, refuses a
foreign state."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretend import KINDS, SPREAD, observed, tasks, walk
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Uniform

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@settings(deadline=None, max_examples=tries(40))
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2))
def test_a_resumed_curriculum_goes_on_as_one_that_never_stopped(kind, stop, count, seed):
    whole = walk(KINDS[kind](SPREAD, seed), 0, 12, count)
    first = KINDS[kind](SPREAD, seed)
    walk(first, 0, stop, count)
    saved = json.loads(json.dumps(first.state_dict()))
    resumed = KINDS[kind](SPREAD, seed)
    resumed.load_state_dict(saved)
    assert json.loads(json.dumps(resumed.state_dict())) == saved
    assert walk(resumed, stop, 12, count) == whole[stop:]


@every_kind
def test_a_state_saved_between_two_picks_of_a_step_is_complete(kind):
    first, resumed = KINDS[kind](SPREAD), KINDS[kind](SPREAD)
    walk(first, 0, 5)
    first.pick(30, 3)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    resumed.begin(4)
    assert first.pick(33, 4) == resumed.pick(33, 4)


@every_kind
def test_global_generators_change_nothing_and_the_seed_does(kind):
    random.seed(1)
    first = walk(KINDS[kind](SPREAD), 0, 6)
    random.seed(2)
    assert walk(KINDS[kind](SPREAD), 0, 6) == first != walk(KINDS[kind](SPREAD, 1), 0, 6)


@every_kind
@settings(deadline=None, max_examples=tries(60))
@given(tasks, st.integers(1, 9), st.integers(1, 6))
def test_picks_are_as_many_as_wanted_and_differ_while_there_are_enough(kind, tasks, count, steps):
    if kind == "manual" and len({one.difficulty for one in tasks}) == 1:
        return  # Its only cut leaves no task for the second band.
    curriculum = KINDS[kind](tasks)
    for step in range(steps):
        curriculum.begin(step)
        allowed = len(tasks)
        if hasattr(curriculum, "band"):
            allowed = sum(curriculum._band_of[one.id] <= curriculum.band for one in tasks)
        picked = curriculum.pick(2 * step * count, count) + curriculum.pick((2 * step + 1) * count, count)
        assert len(picked) == 2 * count
        assert len({one.id for one in picked}) == min(2 * count, allowed)
        curriculum.observe(observed(step, picked))


@every_kind
def test_a_state_with_other_keys_is_refused(kind):
    curriculum = KINDS[kind](SPREAD)
    state = curriculum.state_dict()
    for wrong in ({**state, "more": 1}, dict(list(state.items())[1:]), {}):
        with pytest.raises(InputError, match="other keys"):
            curriculum.load_state_dict(wrong)


def test_one_without_memory_has_no_state_and_takes_none():
    curriculum = Uniform(SPREAD, 0)
    assert curriculum.state_dict() == {} == curriculum.metrics()
    curriculum.load_state_dict({})
    with pytest.raises(InputError, match="other keys"):
        curriculum.load_state_dict({"dealt": {}})


@every_kind
def test_no_tasks_are_refused(kind):
    with pytest.raises(ValueError, match=r"no tasks|min\(\)"):
        KINDS[kind]([])
