"""The contract of a curriculum: given the tasks and a step, which tasks are asked."""

from abc import ABC, abstractmethod

from rlvr_exp.tasks.base import Task


class Curriculum(ABC):
    """Chooses tasks. Built from the `curriculum` group with the run's tasks and seed."""

    @abstractmethod
    def pick(self, step: int, count: int) -> list[Task]:
        """The tasks of one step, counted from 0; all different where there are enough."""
