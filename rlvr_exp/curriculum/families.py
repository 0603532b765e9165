"""Families of tasks in proportion to the expected share of their groups that teach.

Where tasks are many and steps few, most tasks are seen once, and nothing is known of the next one but its family. A group teaches
where its rewards vary. The share of such groups has a Beta posterior for each family, whose counts decay with every step that
samples, since the policy changes; a family is drawn with its number of tasks times the expected share, and in it the task that was
picked least often. Of one family alone all tasks take turns.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys
from rlvr_exp.curriculum.dealer import Dealer
from rlvr_exp.tasks.base import Task


class Families(Curriculum, options.Families):
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
        return (self.prior + teach) / (2 * self.prior + teach + others)

    def observe(self, rollouts: Sequence[Observation]) -> None:
        """A task counts once in a step: it teaches where any of its groups does."""
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
        check_keys(self, state)
        self._dealer.load_state_dict(state)
        self._counts = {family: (teach, others) for family, (teach, others) in state["counts"].items()}

    def metrics(self) -> dict[str, float]:
        """The share of the tasks that are of observed families, and the expected share of all tasks that teach."""
        sizes = {family: len(tasks) for family, tasks in self._tasks.items()}
        whole = sum(sizes.values())
        teaching = sum(size * self.teaching(family) for family, size in sizes.items()) / whole
        return {"pool": sum(sizes[family] for family in self._counts) / whole, "teaching": teaching}
