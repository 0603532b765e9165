"""Tasks that are solved sometimes: drawn by the expected p(1 - p) of each task's success rate p, with a share of tasks that
were never observed.

p has a Beta posterior whose counts decay with every step that samples, since the policy changes: a task that was not
seen for long is as good as unknown, and is drawn again. E[p(1 - p)] of Beta(a, b) is ab / ((a + b)(a + b + 1)). LILO
(arXiv:2502.12272) takes the highest p(1 - p) of a screened pool; here nothing is screened, and tasks are drawn in proportion,
so that equals take turns.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys, part_of
from rlvr_exp.curriculum.dealer import Dealer
from rlvr_exp.tasks.base import Task


class Learnability(Curriculum, options.Learnability):
    def __init__(self, tasks: Sequence[Task], seed: int, **given: Any):
        super().__init__(**given)
        if not tasks:
            raise ValueError("Learnability: no tasks to choose from")
        self._tasks, self._dealer = tasks, Dealer(seed)
        self._ids = {task.id for task in tasks}
        self._observed = 0
        """Steps observed."""
        self._counts: dict[str, tuple[float, float, int]] = {}
        """Successes and failures of each observed task, decayed up to a step."""

    def pick(self, offset: int, count: int) -> list[Task]:
        left = self._dealer.left(self._tasks)
        new = [task for task in left if task.id not in self._counts]
        seen = [task for task in left if task.id in self._counts]
        wanted = max(min(part_of(offset, count, self.unexplored), len(new)), min(count - len(seen), len(new)))
        picked = self._dealer.deal(new, wanted) + self._draw(seen, offset, count - wanted)
        return picked + self._dealer.deal(self._tasks, count - len(picked))

    def _draw(self, tasks: Sequence[Task], offset: int, count: int) -> list[Task]:
        """Tasks in proportion to what can be learned from them, none twice (Efraimidis and Spirakis 2006)."""

        def key(task: Task) -> tuple[float, str]:
            drawn = uniform(self._dealer.seed, "curriculum", "learnability", offset, task.id)
            return math.log(drawn or 2.0**-54) / self.learnability(task.id), task.id

        return list(self._dealer.took(heapq.nlargest(count, tasks, key=key)))

    def learnability(self, task: str) -> float:
        """The expected p(1 - p) of a task; of one never observed, the prior's."""
        successes, failures, at = self._counts.get(task, (0.0, 0.0, self._observed))
        left = self.decay ** (self._observed - at)
        a, b = self.prior + left * successes, self.prior + left * failures
        return a * b / ((a + b) * (a + b + 1))

    def observe(self, rollouts: Sequence[Observation]) -> None:
        self._dealer.end_step()
        self._observed += 1
        for one in rollouts:
            if one.samples and one.task in self._ids:
                successes, failures, at = self._counts.get(one.task, (0.0, 0.0, self._observed))
                left, failed = self.decay ** (self._observed - at), one.samples - one.successes
                self._counts[one.task] = (left * successes + one.successes, left * failures + failed, self._observed)

    def state_dict(self) -> dict[str, Any]:
        counts = {task: list(values) for task, values in self._counts.items()}
        return {**self._dealer.state_dict(), "observed": self._observed, "counts": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_keys(self, state)
        self._dealer.load_state_dict(state)
        self._observed = state["observed"]
        self._counts = {task: (a, b, at) for task, (a, b, at) in state["counts"].items()}

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that were observed, and the mean of their expected p(1 - p)."""
        found = {"pool": len(self._counts) / len(self._tasks)}
        return found | ({"learnability": fmean(map(self.learnability, self._counts))} if self._counts else {})
