"""The interface of a curriculum, and the dealer of tasks that curricula with memory share.

A curriculum chooses which tasks are prompted, and in what order. It is a function of its options, the run's seed and its
observations: it draws from counter-based seeds alone, so that every rank makes the same choice, and a run that is resumed
from its state makes the choice of one that never stopped. One without memory implements `pick` alone.
"""

import heapq
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.tasks.base import Task


@dataclass(frozen=True)
class Observation:
    """What a group of a task's completions earned."""

    task: str
    """Its id."""
    successes: int
    samples: int
    """Completions with a verdict."""
    mixed: bool
    """The rewards of the group vary, so that it teaches."""


class Curriculum(ABC):
    """Chooses tasks. Built from the `curriculum` group with the run's tasks and seed."""

    def begin(self, step: int) -> None:  # noqa: B027  (most curricula do not ask)
        """The next picks are those of a step, counted from 0."""

    @abstractmethod
    def pick(self, offset: int, count: int) -> list[Task]:
        """The next `count` tasks of a run, after the first `offset` tasks; all different where there are enough.

        A step that needs further tasks (algorithm.zero_variance=resample) picks several times, each time from where the
        last pick ended.
        """

    def observe(self, rollouts: Sequence[Observation]) -> None:  # noqa: B027  (one without memory does nothing)
        """What the tasks picked since the last call earned: called once in each step that samples, on every rank with the
        same values."""

    def state_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint; empty: nothing is remembered."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where the state was saved.

        Raises:
            InputError: unknown or missing keys.
        """
        check_keys(self, state)

    def sources(self, count: int) -> Mapping[str, int]:
        """How many of the first `count` tasks of a run come from each source of a mixture; empty without one."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Where the curriculum stands, by names that are logged as `curriculum/NAME`."""
        return {}


def check_keys(curriculum: Curriculum, state: Mapping[str, Any]) -> None:
    """Raises InputError unless a saved state has the keys of the curriculum's own."""
    wanted = curriculum.state_dict().keys()
    if state.keys() != wanted:
        got, allowed = (", ".join(sorted(keys)) or "no keys" for keys in (state, wanted))
        where, remedy = f"state of {type(curriculum).__name__}", "resume with the version that wrote the checkpoint"
        raise InputError(InputProblem(where, "has other keys", got, allowed, remedy=remedy))


def part_of(offset: int, count: int, share: float) -> int:
    """How many of the `count` tasks after the first `offset` are of a part that has this share of all tasks."""
    return int((offset + count) * share) - int(offset * share)


class Dealer:
    """Deals tasks of changing pools: the least often dealt first, ties by a draw of the seed. Deals no task twice in a step
    while others are left. Remembers how often each task was dealt."""

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
