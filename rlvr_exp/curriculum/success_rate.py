"""Curricula by observed success: tasks within bounds of the success rate, tasks by learnability, families by learning signal."""

import heapq
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.core.errors import check_state
from rlvr_exp.core.seeds import stream, uniform
from rlvr_exp.curriculum.base import Curriculum, Dealer, Observation, part_of
from rlvr_exp.tasks.base import Task

PRIOR = 1.0
"""Successes, and failures, that are assumed of every task; of a family, groups that teach and groups that do not."""


class Band(Curriculum, options.Band):
    """A pool of tasks whose success rate stays between two bounds; tasks that leave it make room for others.

    The filter of arXiv:2504.03380, on groups of earlier steps: no sample is thrown away. Tasks that left rest until no other
    is left for a pick.
    """

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
        check_state(self, state, self.state_dict())
        self._dealer.load_state_dict(state)
        self._pool = {task: (successes, samples) for task, (successes, samples) in state["pool"].items()}
        self._resting = list(state["resting"])
        left = {*self._pool, *self._resting}
        self._queue = [task for task in self._order if task not in left]

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that is in the pool, and the share that left it."""
        return {"pool": len(self._pool) / len(self._tasks), "resting": len(self._resting) / len(self._tasks)}


class Learnability(Curriculum, options.Learnability):
    """Tasks that are solved sometimes: drawn by the expected p(1 - p) of each task's success rate p, with a share of tasks
    that were never observed.

    p has a Beta posterior whose counts decay with every step that samples, since the policy changes: a task that was not
    seen for long is drawn again. E[p(1 - p)] of Beta(a, b) is ab / ((a + b)(a + b + 1)). LILO (arXiv:2502.12272) takes the
    highest p(1 - p) of a screened pool; here nothing is screened, and tasks are drawn in proportion, so that equal tasks
    take turns.
    """

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
        """Tasks in proportion to their learnability, none twice (Efraimidis and Spirakis 2006)."""

        def key(task: Task) -> tuple[float, str]:
            drawn = uniform(self._dealer.seed, "curriculum", "learnability", offset, task.id)
            return math.log(drawn or 2.0**-54) / self.learnability(task.id), task.id

        return list(self._dealer.took(heapq.nlargest(count, tasks, key=key)))

    def learnability(self, task: str) -> float:
        """The expected p(1 - p) of a task; of one never observed, the prior's."""
        successes, failures, at = self._counts.get(task, (0.0, 0.0, self._observed))
        left = self.decay ** (self._observed - at)
        a, b = PRIOR + left * successes, PRIOR + left * failures
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
        check_state(self, state, self.state_dict())
        self._dealer.load_state_dict(state)
        self._observed = state["observed"]
        self._counts = {task: (a, b, at) for task, (a, b, at) in state["counts"].items()}

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that were observed, and the mean of their expected p(1 - p)."""
        found = {"pool": len(self._counts) / len(self._tasks)}
        return found | ({"learnability": fmean(map(self.learnability, self._counts))} if self._counts else {})


class Families(Curriculum, options.Families):
    """Families of tasks in proportion to the expected share of their groups with a learning signal.

    If tasks are many and steps few, most tasks are seen once, and only the family of the next one is known. A group teaches
    if its rewards vary. The share of such groups has a Beta posterior for each family, whose counts decay with every step that
    samples, since the policy changes. A family is drawn in proportion to its number of tasks times the expected share, and in
    it the task that was picked least often. With one family all tasks take turns.
    """

    def __init__(self, tasks: Sequence[Task], seed: int, **given: Any):
        super().__init__(**given)
        if not tasks:
            raise ValueError("Families: no tasks to choose from")
        self._dealer, self._family_of = Dealer(seed), {task.id: task.family for task in tasks}
        self._tasks: dict[str, list[Task]] = {}
        for task in tasks:
            self._tasks.setdefault(task.family, []).append(task)
        self._counts: dict[str, tuple[float, float]] = {}
        """Groups that teach, and others, of each observed family, decayed."""

    def pick(self, offset: int, count: int) -> list[Task]:
        return [self._next(offset + place) for place in range(count)]

    def _next(self, place: int) -> Task:
        """From a family with tasks that the step has not had, as long as there is any."""
        left = {family: self._dealer.left(tasks) for family, tasks in self._tasks.items()}
        pools = {family: tasks for family, tasks in left.items() if tasks} or self._tasks
        bounds = list(accumulate(len(self._tasks[family]) * self.teaching(family) for family in pools))
        drawn = uniform(self._dealer.seed, "curriculum", "families", place) * bounds[-1]
        found = next(
            pool for pool, bound in zip(pools.values(), bounds, strict=True) if drawn < bound or bound == bounds[-1]
        )
        return self._dealer.deal(found, 1)[0]

    def teaching(self, family: str) -> float:
        """The expected share of a family's groups that teach; of one never observed, the prior's."""
        teach, others = self._counts.get(family, (0.0, 0.0))
        return (PRIOR + teach) / (2 * PRIOR + teach + others)

    def observe(self, rollouts: Sequence[Observation]) -> None:
        """A task counts once in a step: it teaches if any of its groups does."""
        self._dealer.end_step()
        self._counts = {family: (self.decay * a, self.decay * b) for family, (a, b) in self._counts.items()}
        teaches: dict[str, bool] = {}
        for one in rollouts:
            if one.samples and one.task in self._family_of:
                teaches[one.task] = teaches.get(one.task, False) or one.mixed
        for task, mixed in teaches.items():
            teach, others = self._counts.get(self._family_of[task], (0.0, 0.0))
            self._counts[self._family_of[task]] = (teach + mixed, others + (not mixed))

    def state_dict(self) -> dict[str, Any]:
        return {**self._dealer.state_dict(), "counts": {family: list(own) for family, own in self._counts.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, self.state_dict())
        self._dealer.load_state_dict(state)
        self._counts = {family: (teach, others) for family, (teach, others) in state["counts"].items()}

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that are of observed families, and the expected share of all tasks that teach."""
        sizes = {family: len(tasks) for family, tasks in self._tasks.items()}
        whole = sum(sizes.values())
        teaching = sum(size * self.teaching(family) for family, size in sizes.items()) / whole
        return {"pool": sum(sizes[family] for family in self._counts) / whole, "teaching": teaching}
