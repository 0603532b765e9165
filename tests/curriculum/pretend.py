"""Tasks without content, and a policy that solves a task as often as a draw of its id, the step and its difficulty says."""

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum, Observation
from rlvr_exp.curriculum.difficulty_bands import Manual, Staged
from rlvr_exp.curriculum.success_rate import Band, Families, Learnability

SAMPLES = 4


def tasks_of(scores) -> list[Any]:
    return [
        SimpleNamespace(id=f"task{index}", difficulty=score, family=f"family{index % 2}")
        for index, score in enumerate(scores)
    ]


tasks = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]) | st.floats(0, 9), min_size=1, max_size=20).map(tasks_of)
KINDS = {
    "staged": lambda tasks, seed=0: Staged(tasks, seed, window=3, threshold=0.4),
    "manual": lambda tasks, seed=0: Manual(tasks, seed, cuts=[min(one.difficulty for one in tasks)], steps=[3]),
    "learnability": lambda tasks, seed=0: Learnability(tasks, seed, decay=0.9),
    "families": lambda tasks, seed=0: Families(tasks, seed, decay=0.9),
    "band": lambda tasks, seed=0: Band(tasks, seed, size=6, least_samples=SAMPLES),
}
"""Those with memory, with options under which much happens in few steps."""
SPREAD = tasks_of(place / 20 for place in range(20))


def observed(step: int, picked) -> list[Observation]:
    """What the tasks earn; of some nothing has a verdict."""
    found = []
    for place, task in enumerate(picked):
        samples = 0 if uniform("lost", step, place) < 0.1 else SAMPLES
        easy = 1 / (1 + task.difficulty * 2)
        solved = sum(uniform("solved", step, place, one) < easy for one in range(samples))
        found.append(Observation(task.id, solved, samples, 0 < solved < samples))
    return found


def walk(curriculum: Curriculum, first: int, last: int, count: int = 3) -> list[list[str]]:
    """Ids picked in steps, two picks a step, and what the curriculum then shows."""
    found = []
    for step in range(first, last):
        curriculum.begin(step)
        picked = curriculum.pick(2 * step * count, count) + curriculum.pick((2 * step + 1) * count, count)
        curriculum.observe(observed(step, picked))
        found.append(
            [task.id for task in picked] + [f"{name}={value!r}" for name, value in curriculum.metrics().items()]
        )
    return found
