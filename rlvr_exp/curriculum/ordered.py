"""From the easiest task to the hardest, the same order in every epoch. A function of the position alone."""

from collections.abc import Sequence

from rlvr_exp.config import curriculum as options
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.tasks.base import Task


class Ordered(Curriculum, options.Ordered):
    """Tasks by their domain's difficulty, ties by id."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        """`seed` is not used here; every curriculum takes the run's seed."""
        if not tasks:
            raise ValueError("Ordered: no tasks to choose from")
        self._tasks = sorted(tasks, key=lambda task: (task.difficulty, task.id))

    def pick(self, offset: int, count: int) -> list[Task]:
        return [self._tasks[index % len(self._tasks)] for index in range(offset, offset + count)]
