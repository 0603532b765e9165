"""A pool of tasks whose success rate stays between two bounds; those that leave it make room for others.

The filter of arXiv:2504.03380, on groups of earlier steps: nothing is sampled to be thrown away. Tasks that left rest until
no other is left for a pick.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.seeds import stream
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys
from rlvr_exp.curriculum.dealer import Dealer
from rlvr_exp.tasks.base import Task


class Band(Curriculum, options.Band):
    def __init__(self, tasks: Sequence[Task], seed: int, **given: Any):
        super().__init__(**given)
        if not tasks:
            raise ValueError("Band: no tasks to choose from")
        self._tasks, self._dealer = {task.id: task for task in tasks}, Dealer(seed)
        self._order = [task.id for task in tasks]
        stream(seed, "curriculum", "band").shuffle(self._order)
        self._queue = list(self._order)
        """Tasks that were never in the pool, the next one last."""
        self._pool: dict[str, tuple[int, int]] = {}
        """(successes, samples) of each task since its success rate was last measured."""
        self._resting: list[str] = []
        """Tasks that left the pool, the first one first."""

    def pick(self, offset: int, count: int) -> list[Task]:
        self._refill(count)
        return self._dealer.deal([self._tasks[task] for task in self._pool], count)

    def _refill(self, count: int) -> None:
        """Fill the pool; with tasks that rest only as far as the pick has no others."""
        left = self._dealer.left(self._tasks[task] for task in self._pool)
        needed = count + len(self._pool) - len(left)  # So that the step's picks are all different.
        while self._queue and len(self._pool) < max(self.size, needed):
            self._pool[self._queue.pop()] = (0, 0)
        while self._resting and len(self._pool) < needed:
            self._pool[self._resting.pop(0)] = (0, 0)

    def observe(self, rollouts: Sequence[Observation]) -> None:
        self._dealer.end_step()
        for one in rollouts:
            if one.samples and one.task in self._pool:
                successes, samples = self._pool[one.task]
                self._pool[one.task] = (successes + one.successes, samples + one.samples)
        for task in dict.fromkeys(one.task for one in rollouts):
            if self._pool.get(task, (0, 0))[1] >= self.least_samples:
                self._measure(task)

    def _measure(self, task: str) -> None:
        """Let a task stay or leave; the completions that decided do not count again, since the policy changes."""
        successes, samples = self._pool[task]
        if self.low <= successes / samples <= self.high:
            self._pool[task] = (0, 0)
        else:
            del self._pool[task]
            self._resting.append(task)

    def state_dict(self) -> dict[str, Any]:
        pool = {task: list(counts) for task, counts in self._pool.items()}
        return {**self._dealer.state_dict(), "pool": pool, "resting": list(self._resting)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_keys(self, state)
        self._dealer.load_state_dict(state)
        self._pool = {task: (successes, samples) for task, (successes, samples) in state["pool"].items()}
        self._resting = list(state["resting"])
        left = {*self._pool, *self._resting}
        self._queue = [task for task in self._order if task not in left]

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that is in the pool, and the share that left it."""
        return {"pool": len(self._pool) / len(self._tasks), "resting": len(self._resting) / len(self._tasks)}
