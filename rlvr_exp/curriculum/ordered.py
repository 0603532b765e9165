"""From the easiest task to the hardest, the same order in every epoch. A function of the position alone."""

from collections.abc import Sequence

from rlvr_exp.config import curriculum as options
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.tasks.base import Task


class Ordered(Curriculum, options.Ordered):
    """Tasks by their domain's difficulty, ties by id; a pick that crosses into the next epoch is sorted too."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        """`seed` is not used here; every curriculum takes the run's seed."""
        if not tasks:
            raise ValueError("Ordered: no tasks to choose from")
        self._tasks = sorted(tasks, key=_rank)

    def pick(self, offset: int, count: int) -> list[Task]:
        return sorted((self._tasks[index % len(self._tasks)] for index in range(offset, offset + count)), key=_rank)


def _rank(task: Task) -> tuple[float, str]:
    return task.difficulty, task.id
