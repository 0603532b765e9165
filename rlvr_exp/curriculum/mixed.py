"""A curriculum of its own for each source of tasks, and prompts of the sources in fixed shares (`data.mix`)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.core.shares import Quota
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys
from rlvr_exp.tasks.base import Task


class Mixed(Curriculum):
    """
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
