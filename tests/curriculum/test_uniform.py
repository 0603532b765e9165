"""The uniform curriculum: every task equally often, in an order of the seed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.curriculum.uniform import Uniform

names = st.integers(1, 20).map(lambda count: [f"task{index}" for index in range(count)])


@given(names, st.integers(1, 7), st.integers(0, 3))
def test_after_any_number_of_steps_counts_differ_by_at_most_one(tasks, count, seed):
    curriculum = Uniform(tasks, seed)
    seen = Counter(dict.fromkeys(tasks, 0))
    for step in range(12):
        seen.update(curriculum.pick(step * count, count))
        assert max(seen.values()) - min(seen.values()) <= 1


@given(names, st.integers(1, 7))
def test_a_place_holds_the_same_task_however_it_is_come_by(tasks, count):
    walked = Uniform(tasks, 0)
    one_by_one = [task for place in range(9 * count) for task in walked.pick(place, 1)]
    again = [Uniform(tasks, 0).pick(step * count, count) for step in reversed(range(9))][::-1]
    assert [task for picked in again for task in picked] == one_by_one


def test_seeds_and_epochs_give_different_orders():
    tasks = list(range(50))
    first = Uniform(tasks, 0)
    assert first.pick(0, 50) != Uniform(tasks, 1).pick(0, 50)
    assert first.pick(0, 50) != first.pick(50, 50)
