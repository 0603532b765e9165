"""The ordered curriculum: easiest first, all of them, over and over."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.curriculum.ordered import Ordered

tasks = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(
    lambda scores: [SimpleNamespace(id=f"task{index}", difficulty=score) for index, score in enumerate(scores)]
)


@given(tasks, st.integers(1, 5))
def test_one_time_through_is_every_task_from_easy_to_hard(tasks, count):
    curriculum = Ordered(tasks, seed=0)
    walked = [task for step in range(-(-len(tasks) // count)) for task in curriculum.pick(step * count, count)]
    assert sorted(task.id for task in walked[: len(tasks)]) == sorted(task.id for task in tasks)
    scores = [task.difficulty for task in walked[: len(tasks)]]
    assert scores == sorted(scores)
    assert curriculum.pick(0, len(tasks)) == curriculum.pick(len(tasks), len(tasks))
