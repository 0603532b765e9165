"""Static curricula: the order of tasks is a function of the position in the run; `Mixed` gives sources fixed shares."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.core.seeds import stream
from rlvr_exp.core.shares import Quota
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys
from rlvr_exp.tasks.base import Task


class Uniform(Curriculum, options.Uniform):
    """Every task equally often: epochs of seeded permutations, laid end to end."""

    def __init__(self, tasks: Sequence[Task], seed: int):
        if not tasks:
            raise ValueError("Uniform: no tasks to choose from")
        self._tasks = tasks
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

    def pick(self, offset: int, count: int) -> list[Task]:
        return [self._tasks[self._place(index)] for index in range(offset, offset + count)]

    def _place(self, index: int) -> int:
        epoch, offset = divmod(index, len(self._tasks))
        return self._order(epoch)[offset]

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
        return self._quota.between(offset, offset + count, self._of)

    def _of(self, source: str, first: int, last: int) -> list[Task]:
        return self._parts[source].pick(first, last - first) if last > first else []

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
        check_keys(self, state)
        for source, of_part in state.items():
            self._parts[source].load_state_dict(of_part)

    def sources(self, count: int) -> Mapping[str, int]:
        return self._quota.before(count)

    def metrics(self) -> dict[str, float]:
        return {
            f"{source}/{name}": value for source, part in self._parts.items() for name, value in part.metrics().items()
        }
