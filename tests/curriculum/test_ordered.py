"""The ordered curriculum: easiest first, all of them, over and over."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.curriculum.ordered import Ordered

tasks = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(
    lambda scores: [SimpleNamespace(id=f"task{index}", difficulty=score) for index, score in enumerate(scores)]
)


@given(tasks, st.integers(1, 5))
def test_one_time_through_is_every_task_from_easy_to_hard(tasks, count):
    curriculum = Ordered(tasks, seed=0)
    once = curriculum.pick(0, len(tasks))
    assert sorted(task.id for task in once) == sorted(task.id for task in tasks)
    assert once == curriculum.pick(len(tasks), len(tasks))
    walked = Counter(task.id for step in range(len(tasks)) for task in curriculum.pick(step * count, count))
    assert set(walked.values()) == {count}


@pytest.mark.property(3)
@given(tasks, st.integers(1, 9), st.integers(1, 30))
def test_in_any_batch_difficulty_never_falls(tasks, size, steps):
    curriculum = Ordered(tasks, seed=0)
    for step in range(steps):
        scores = [task.difficulty for task in curriculum.pick(step * size, size)]
        assert scores == sorted(scores)
