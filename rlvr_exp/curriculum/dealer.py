"""Deals tasks of changing pools: the least often dealt first, ties by a draw of the seed, none twice in a step while others
are there. Remembers how often each task was dealt."""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr_exp.core.seeds import uniform
from rlvr_exp.tasks.base import Task


class Dealer:
    def __init__(self, seed: int):
        self.seed = seed
        self._dealt: Counter[str] = Counter()
        """Times that each task was dealt in the run."""
        self._in_step: Counter[str] = Counter()
        """Times that each task was dealt in the current step."""

    def deal(self, pool: Sequence[Task], count: int) -> list[Task]:
        """`count` tasks of a pool, again from its first where it has fewer; none of an empty pool."""
        found: list[Task] = []
        while pool and len(found) < count:
            found += self.took(heapq.nsmallest(count - len(found), pool, key=self._rank))
        return found

    def took(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Note tasks as dealt."""
        names = [task.id for task in tasks]
        self._dealt.update(names)
        self._in_step.update(names)
        return tasks

    def left(self, pool: Iterable[Task]) -> list[Task]:
        """The tasks of a pool that were not dealt in the current step."""
        return [task for task in pool if task.id not in self._in_step]

    def end_step(self) -> None:
        self._in_step.clear()

    def _rank(self, task: Task) -> tuple[int, int, float, str]:
        dealt = self._dealt[task.id]
        return self._in_step[task.id], dealt, uniform(self.seed, "curriculum", dealt, task.id), task.id

    def state_dict(self) -> dict[str, Any]:
        return {"dealt": dict(self._dealt), "in_step": dict(self._in_step)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._dealt, self._in_step = Counter(state["dealt"]), Counter(state["in_step"])
