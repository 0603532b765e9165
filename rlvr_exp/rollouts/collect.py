"""The groups of one step: tasks chosen, completions generated, verified, rewarded and filtered.

Groups wait in a queue between being sampled and being trained on: a batch may serve several steps, and where groups of
zero variance are resampled a step may find more useful groups than it needs. No accepted group is thrown away. Every
decision is taken on all groups of a step, from values that every rank holds. Sampling and verification are in
rollouts.rollout_loop.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.episodes.types import Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Reward, RewardBreakdown
from rlvr_exp.rollouts.group_filter import GroupFilter
from rlvr_exp.rollouts.groups import Group, Groups, check_groups
from rlvr_exp.rollouts.rollout_loop import RolloutRequest, generate_and_verify
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.rollouts.saved_groups import group_from, group_state
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

RewardShaping = Callable[[float, int], float]
"""(reward, tokens of the completion) -> the reward that the algorithm learns from."""


@dataclass(frozen=True)
class BatchPlan:
    """How many groups are sampled, and when."""

    prompts_per_step: int
    group_size: int
    steps: int
    """Update steps of the run: nothing is sampled for steps after the last."""
    iterations: int = 1
    """Consecutive updates on the same groups: new groups are sampled only every so many steps."""
    rollout_steps: int = 1
    """Steps that a batch of groups serves."""

    def groups_needed(self, step: int) -> int:
        """Groups that must be available after a batch is sampled at this step."""
        left = math.ceil((self.steps - step) / self.iterations)
        return self.prompts_per_step * max(1, min(self.rollout_steps, left))


class Collector:
    """Samples and verifies; holds everything that a step needs except the algorithm.

    Args:
        tasks: the tasks that the curriculum chooses from; groups of a saved state refer to them by id.
        shape: the algorithm's own reward shaping.
        seed: of the run; samples depend only on (seed, step, index, task, sample).
    """

    def __init__(
        self,
        policy: Policy,
        domain: Domain,
        verifier: Verifier,
        reward: Reward,
        curriculum: Curriculum,
        tasks: Sequence[Task],
        sampling: SamplingParams,
        plan: BatchPlan,
        group_filter: GroupFilter,
        shape: RewardShaping,
        seed: int,
    ):
        self.policy, self.domain, self.verifier, self.reward = policy, domain, verifier, reward
        self.curriculum, self.sampling, self.plan, self.filter = curriculum, sampling, plan, group_filter
        self.seed = seed
        self._tasks, self._shape = tasks, shape
        self._n_requested = 0
        """Tasks requested so far in the run."""
        self._carried_over: tuple[Group, ...] = ()

    def collect(self, step: int) -> Groups:
        """The groups of a step, counted from 0. Steps must be collected in order."""
        carried_in, seconds = self._carried_over, Counter()
        fresh: list[Group] = []
        if len(carried_in) < self.plan.prompts_per_step:
            self._fill(step, len(carried_in), fresh, seconds)
        batch, self._carried_over = self._chosen(carried_in, fresh)
        check_groups((*batch, *self._carried_over), self.plan.group_size)
        kinds = ((group.id, self.filter.zero_variance_kind(group)) for group in (*carried_in, *fresh))
        zero_variance = {number: kind for number, kind in kinds if kind}
        return Groups(step, batch, tuple(fresh), carried_in, self._carried_over, zero_variance, dict(seconds))

    def _fill(self, step: int, n_carried_in: int, fresh: list[Group], seconds: Counter) -> None:
        """Sample a batch; where groups of zero variance are resampled, continue until enough useful groups are found or the
        budget is spent."""
        wanted = self.plan.groups_needed(step) - n_carried_in
        most = wanted * self.filter.budget if self.filter.resamples else wanted
        count = wanted
        while count:
            fresh += self._ask(step, len(fresh), count, seconds)
            alive = sum(self.filter.zero_variance_kind(group) is None for group in fresh)
            count = min(_next_request_size(alive, len(fresh), wanted), most - len(fresh)) if self.filter.resamples else 0

    def _chosen(self, carried_in: Sequence[Group], fresh: Sequence[Group]) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """(groups of this step's batch, groups carried over). Where useful groups are too few, groups of zero variance fill
        the batch: they are masked, and the batch keeps its size."""
        pool = [*carried_in, *fresh]
        if not self.filter.resamples:
            return tuple(pool[: self.plan.prompts_per_step]), tuple(pool[self.plan.prompts_per_step :])
        live = [group for group in pool if self.filter.zero_variance_kind(group) is None]
        batch, carried_over = live[: self.plan.prompts_per_step], live[self.plan.prompts_per_step :]
        zero_variance = [group for group in fresh if self.filter.zero_variance_kind(group) is not None]
        return (*batch, *zero_variance[: self.plan.prompts_per_step - len(batch)]), tuple(carried_over)

    def _ask(self, step: int, first: int, count: int, seconds: Counter) -> list[Group]:
        """`count` new groups; the first has index `first` in the step."""
        tasks = self.curriculum.pick(self._n_requested, count)
        self._n_requested += count
        texts = [self.domain.prompt(task) for task in tasks]
        requests = [
            RolloutRequest(task, tuple(self.policy.encode_prompt(text)), self._keys(step, first + index, task))
            for index, (task, text) in enumerate(zip(tasks, texts, strict=True))
        ]
        result = generate_and_verify(self.policy, self.domain, self.verifier, requests, self.sampling)
        seconds.update(result.seconds)
        paid = self._rewarded(result.completions)
        parts = zip(texts, requests, result.completions, paid, strict=True)
        return [
            Group(step, first + i, text, request.prompt, tuple(each), rewarded, self._shaped(each, rewarded))
            for i, (text, request, each, rewarded) in enumerate(parts)
        ]

    def _keys(self, step: int, index: int, task: Task) -> tuple[tuple[Any, ...], ...]:
        return tuple((self.seed, "rollout", step, index, task.id, sample) for sample in range(self.plan.group_size))

    def _rewarded(self, completions: Sequence[Sequence[Completion]]) -> list[tuple[RewardBreakdown, ...]]:
        rows = iter(self.reward([one for group in completions for one in group]))
        return [tuple(next(rows) for _ in group) for group in completions]

    def _shaped(self, completions: Sequence[Completion], paid: Sequence[RewardBreakdown]) -> tuple[float | None, ...]:
        parts = zip(completions, paid, strict=True)
        return tuple(None if one.total is None else self._shape(one.total, who.tokens) for who, one in parts)

    @property
    def parts(self) -> dict[str, Any]:
        """Objects whose state belongs to a checkpoint, by name: this collector, its reward and its curriculum."""
        given = {"reward": self.reward, "curriculum": self.curriculum}
        return {"collector": self} | {name: part for name, part in given.items() if hasattr(part, "state_dict")}

    def state_dict(self) -> dict[str, Any]:
        """Plain values: tasks requested so far, and the groups carried over."""
        return {"asked": self._n_requested, "waiting": [group_state(group) for group in self._carried_over]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where the state was saved.

        Raises:
            InputError: unknown or missing keys, or a task that is no longer in the data.
        """
        if set(state) != {"asked", "waiting"}:
            got = ", ".join(sorted(state)) or "no keys"
            remedy = "resume with the version that wrote the checkpoint"
            raise InputError(InputProblem("state of Collector", "has other keys", got, "asked, waiting", remedy=remedy))
        self._n_requested = state["asked"]
        tasks = {task.id: task for task in self._tasks} if state["waiting"] else {}
        self._carried_over = tuple(group_from(group, tasks) for group in state["waiting"])

    def metrics(self) -> dict[str, float]:
        """Tasks requested so far in the run, and groups carried over."""
        return {"asked": float(self._n_requested), "waiting": float(len(self._carried_over))}


def _next_request_size(alive: int, sampled: int, wanted: int) -> int:
    """Groups to sample next so that, at the rate so far, enough have variance; never more than a batch at once."""
    missing = max(0, wanted - alive)
    return min(wanted, math.ceil(missing * sampled / alive)) if alive else wanted
