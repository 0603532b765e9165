"""The interface of a curriculum: which of the tasks are prompted, and in what order."""

from abc import ABC, abstractmethod

from rlvr_exp.tasks.base import Task


class Curriculum(ABC):
    """Chooses tasks. Built from the `curriculum` group with the run's tasks and seed."""

    @abstractmethod
    def pick(self, offset: int, count: int) -> list[Task]:
        """The next `count` tasks of a run, after the first `offset` tasks; all different where there are enough.

        A step that needs further tasks (algorithm.zero_variance=resample) picks several times, each time from where the
        last pick ended.
        """
