"""Curricula: their interface, the dealer of tasks that curricula with memory share, and curricula without memory.

A curriculum chooses which tasks are prompted, and in what order. It is a function of its options, the run's seed and its
observations: it draws from counter-based seeds alone, so that every rank makes the same choice, and a resumed run makes the
choice of one that never stopped. One without memory implements `pick` alone: `Uniform` and `Ordered` depend on the position
in the run; `Mixed` gives sources fixed shares.
"""

import heapq
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.core.errors import check_state
from rlvr_exp.core.seeds import stream, uniform
from rlvr_exp.core.shares import Quota
from rlvr_exp.tasks.base import Task


@dataclass(frozen=True)
class Observation:
    """The successes of a group of a task's completions."""

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
        """The next `count` tasks of a run, after the first `offset` tasks; all different if there are enough.

        A step that needs further tasks (algorithm.zero_variance=resample) picks several times, each time from the end of
        the last pick.
        """

    def observe(self, rollouts: Sequence[Observation]) -> None:  # noqa: B027  (one without memory does nothing)
        """Observe the groups of the tasks picked since the last call: called once in each step that samples, on every rank with the
        same values."""

    def state_dict(self) -> dict[str, Any]:
        """Plain values for a checkpoint; empty: nothing is remembered."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            InputError: unknown or missing keys.
        """
        check_state(self, state, self.state_dict())

    def sources(self, count: int) -> Mapping[str, int]:
        """How many of the first `count` tasks of a run come from each source of a mixture; empty without one."""
        return {}

    def metrics(self) -> dict[str, float]:
        """The state of the curriculum, by names that are logged as `curriculum/NAME`."""
        return {}


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
        """`count` tasks of a pool, again from its first if it has fewer; none of an empty pool."""
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


class Uniform(Curriculum, options.Uniform):
    """Every task equally often: epochs of seeded permutations, laid end to end."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        if not tasks:
            raise ValueError("Uniform: no tasks to choose from")
        self._tasks = tasks
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

    def pick(self, offset: int, count: int) -> list[Task]:
        places = (divmod(index, len(self._tasks)) for index in range(offset, offset + count))
        return [self._tasks[self._order(epoch)[place]] for epoch, place in places]

    def _order(self, epoch: int) -> list[int]:
        if epoch not in self._orders:
            order = list(range(len(self._tasks)))
            stream(self._seed, "curriculum", epoch).shuffle(order)
            # A pick may cross from one epoch into the next: the two newest are enough.
            self._orders = dict([*self._orders.items(), (epoch, order)][-2:])
        return self._orders[epoch]


class Ordered(Curriculum, options.Ordered):
    """From the easiest task to the hardest, in every epoch. Ties are ordered by id; a pick that crosses into the next epoch is
    sorted too."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        """`seed` is not used here; every curriculum takes the run's seed."""
        if not tasks:
            raise ValueError("Ordered: no tasks to choose from")
        self._tasks = sorted(tasks, key=_rank)

    def pick(self, offset: int, count: int) -> list[Task]:
        return sorted((self._tasks[index % len(self._tasks)] for index in range(offset, offset + count)), key=_rank)


def _rank(task: Task) -> tuple[float, str]:
    return task.difficulty, task.id


class Mixed(Curriculum):
    """A curriculum for each source of tasks, and prompts of the sources in fixed shares (`data.mix`).

    Args:
        parts: the curriculum of each source.
        shares: of all prompts, by source.
        sources: of each task, by its id.
    """

    def __init__(self, parts: Mapping[str, Curriculum], shares: Mapping[str, float], sources: Mapping[str, str]):
        self._parts, self._sources = parts, sources
        self._quota = Quota(shares)

    def begin(self, step: int) -> None:
        for part in self._parts.values():
            part.begin(step)

    def pick(self, offset: int, count: int) -> list[Task]:
        def of(source: str, first: int, last: int) -> list[Task]:
            return self._parts[source].pick(first, last - first) if last > first else []

        return self._quota.between(offset, offset + count, of)

    def observe(self, rollouts: Sequence[Observation]) -> None:
        found: dict[str, list[Observation]] = defaultdict(list)
        for one in rollouts:
            found[self._sources[one.task]].append(one)
        for source, part in self._parts.items():
            part.observe(found[source])

    def state_dict(self) -> dict[str, Any]:
        states = {source: part.state_dict() for source, part in self._parts.items()}
        return states if any(states.values()) else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, self.state_dict())
        for source, of_part in state.items():
            self._parts[source].load_state_dict(of_part)

    def sources(self, count: int) -> Mapping[str, int]:
        return self._quota.before(count)

    def metrics(self) -> dict[str, float]:
        return {
            f"{source}/{name}": value for source, part in self._parts.items() for name, value in part.metrics().items()
        }
