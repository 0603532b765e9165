"""The contract of a curriculum: given the tasks, which of them are asked, and in what order."""

from abc import ABC, abstractmethod

from rlvr_exp.tasks.base import Task


class Curriculum(ABC):
    """Chooses tasks. Built from the `curriculum` group with the run's tasks and seed."""

    @abstractmethod
    def pick(self, offset: int, count: int) -> list[Task]:
        """The next `count` tasks of a run that has asked `offset` tasks before; all different where there are enough.

        A step that asks further tasks (algorithm.zero_variance=resample) picks more than once, each time from where the
        last pick ended.
        """
