"""Relabelling in hindsight: a program that fails its task is the gold of the task that it does solve.

CodeIt (Butt et al. 2024, arXiv 2402.04858) and SOAR (Pourcel et al. 2025, arXiv 2507.14172). Runs no program. What is
kept must hold no part of a held-out task: a policy that makes its own tasks could else be shown what it is measured on.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rlvr_exp.tasks.base import RelabelsTasks, Task

LEAK, KNOWN = "leak", "known"
"""Why a task is not kept: a part of it is in a held-out one; it was made before."""


class Hindsight:
    """
    Args:
        held_out: tasks of which no part may be in a relabelled one.
        per_behaviour: how often a task may be kept; 0: any number.
    """

    def __init__(self, domain: RelabelsTasks, held_out: Iterable[Task], per_behaviour: int = 1):
        self._domain, self._per_behaviour = domain, per_behaviour
        self._held_out = {part for task in held_out for part in domain.fragments(task)}
        self._kept: Counter[str] = Counter()
        self._this_round: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """Outputs of the round that made no task, by reason."""

    def begin(self) -> None:
        """A new round."""
        self._this_round.clear()
        self.refused.clear()

    def keep(self, names: Iterable[str]) -> None:
        """Relabelled tasks that are not made again."""
        self._kept.update(names)

    def task(self, host: Task, outputs: Sequence[Any]) -> Task | None:
        """The task on the host's inputs that has these outputs; None: there is none, and `refused` says why."""
        found = self._domain.relabelled(host, outputs)
        if isinstance(found, str):
            reason = found
        elif not self._held_out.isdisjoint(self._domain.fragments(found)):
            reason = LEAK
        elif self._per_behaviour and self._kept[found.id] + self._this_round[found.id] >= self._per_behaviour:
            reason = KNOWN
        else:
            self._this_round[found.id] += 1
            return found
        self.refused[reason] += 1
        return None
