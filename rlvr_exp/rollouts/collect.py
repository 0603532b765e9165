"""The rollouts of one step: tasks chosen, episodes run, completions rewarded, groups formed and filtered.

Groups wait in a queue between being sampled and being trained on: a batch may serve several steps, and if groups of
zero variance are resampled a step may find more useful groups than it needs. No accepted group is thrown away. Every
decision is taken on all groups of a step, from values that every rank holds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.core.errors import check_state
from rlvr_exp.curriculum.base import Curriculum, Observation
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.groups import (
    Group,
    GroupFilter,
    Groups,
    check_groups,
    group_from,
    group_state,
    groups_from,
    groups_state,
)
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Task

RewardShaping = Callable[[Sequence[RewardBreakdown], Sequence[Completion]], tuple[float | None, ...]]
"""(rewards of a group, its completions) -> the rewards that the algorithm learns from; None without a verdict."""


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


@dataclass(frozen=True)
class RoleRules:
    """The rules of a role's algorithm for its groups."""

    filter: GroupFilter
    shape: RewardShaping


@dataclass(frozen=True)
class Rollouts:
    """The rollouts of a step."""

    step: int
    """Counted from 0."""
    groups: Mapping[str, Groups]
    """By role; a role that was not sampled is absent."""
    episodes: Sequence[Episode] = ()
    """The episodes sampled in the step."""
    nonfinite: Sequence[str] = ()
    """Descriptions of rewards that are not finite: no update on the step's groups is applied."""
    observations: Sequence[Observation] = ()
    """The curriculum's observations of the groups sampled in the step."""


def rollouts_state(rollouts: Rollouts) -> dict[str, Any]:
    """The part of rollouts that is trained on, as values that JSON can hold."""
    groups = {role: groups_state(own) for role, own in rollouts.groups.items()}
    return {"step": rollouts.step, "groups": groups, "nonfinite": list(rollouts.nonfinite)}


@dataclass
class _Fresh:
    """The episodes and groups of a step so far."""

    episodes: list[Episode] = field(default_factory=list)
    groups: dict[str, list[Group]] = field(default_factory=dict)


class Collector:
    """Samples, verifies and rewards; holds everything that a step needs except the algorithms.

    Args:
        runner: of the environment's episodes.
        rewards: of each role; several may share one.
        tasks: the tasks that the curriculum chooses from; groups of a saved state refer to them by id.
        plan: of the role whose groups are those of the tasks; a queue needs an environment with one group a task.
        rules: of each role.
        seed: of the run; samples depend only on (seed, role, step, index, task, path in the episode).
        samples: indices of the completions of an episode's first prompt; None: as many as the plan's groups have.
    """

    def __init__(
        self,
        runner: EpisodeRunner,
        rewards: Mapping[str, Reward],
        curriculum: Curriculum,
        tasks: Sequence[Task],
        plan: BatchPlan,
        rules: Mapping[str, RoleRules],
        seed: int,
        samples: Sequence[int] | None = None,
    ):
        self.runner, self.curriculum, self.plan = runner, curriculum, plan
        self._reward_of = rewards
        self.seed = seed
        self._tasks, self._rules = tasks, rules
        self._samples = range(plan.group_size) if samples is None else samples
        self._n_requested = 0
        """Tasks requested so far in the run."""
        self._carried_over: tuple[Group, ...] = ()

    @property
    def environment(self) -> Environment:
        return self.runner.environment

    def collect(self, step: int) -> Rollouts:
        """The rollouts of a step, counted from 0. Steps must be collected in order."""
        fresh = _Fresh()
        self.runner.seconds.clear()
        self.curriculum.begin(step)
        if self.environment.one_group:
            (role,) = self.environment.roles
            groups = {role: self._queued(step, role, fresh)}
        else:
            self._ask(step, fresh, self.plan.prompts_per_step)
            groups = {role: self._groups(step, role, each, each, (), ()) for role, each in fresh.groups.items()}
        nonfinite = [text for reward in self.rewards.values() for text in reward.pop_nonfinite()]
        self.environment.remember(fresh.episodes)
        observations = self._observations(fresh)
        if observations:
            self.curriculum.observe(observations)
        return Rollouts(step, groups, fresh.episodes, nonfinite, observations)

    def _observations(self, fresh: _Fresh) -> list[Observation]:
        """Observations of the sampled groups of the first role that has any: its groups are those of the tasks."""
        role = next((role for role in self.environment.roles if fresh.groups.get(role)), None)
        if role is None:
            return []
        found = []
        for group in fresh.groups[role]:
            judged = [one.correct for one in group.completions if one.verdict.outcome != "no_verdict"]
            mixed = self._rules[role].filter.zero_variance_kind(group) is None
            found.append(Observation(group.completions[0].task.id, sum(judged), len(judged), mixed))
        return found

    def _queued(self, step: int, role: str, fresh: _Fresh) -> Groups:
        carried_in = self._carried_over
        if len(carried_in) < self.plan.prompts_per_step:
            self._fill(step, role, len(carried_in), fresh)
        sampled = fresh.groups.get(role, [])
        batch, self._carried_over = self._chosen(role, carried_in, sampled)
        check_groups((*batch, *self._carried_over), self.plan.group_size)
        return self._groups(step, role, batch, sampled, carried_in, self._carried_over)

    def _groups(
        self,
        step: int,
        role: str,
        batch: Sequence[Group],
        sampled: Sequence[Group],
        carried_in: Sequence[Group],
        carried_over: Sequence[Group],
    ) -> Groups:
        kinds = ((group.id, self._rules[role].filter.zero_variance_kind(group)) for group in (*carried_in, *sampled))
        seconds = {phase: value for (of, phase), value in self.runner.seconds.items() if of == role}
        zero_variance = {number: kind for number, kind in kinds if kind}
        return Groups(
            step, tuple(batch), tuple(sampled), tuple(carried_in), tuple(carried_over), zero_variance, seconds
        )

    def _fill(self, step: int, role: str, n_carried_in: int, fresh: _Fresh) -> None:
        """Sample a batch; if groups of zero variance are resampled, continue until enough useful groups are found or the
        budget is spent."""
        rule = self._rules[role].filter
        wanted = self.plan.groups_needed(step) - n_carried_in
        most = wanted * rule.budget if rule.resamples else wanted
        count = wanted
        while count:
            self._ask(step, fresh, count)
            if not rule.resamples:
                return
            sampled = fresh.groups[role]
            alive = sum(rule.zero_variance_kind(group) is None for group in sampled)
            # As many as suffice at the rate so far, never more than a batch at once.
            missing = max(0, wanted - alive)
            expected = min(wanted, math.ceil(missing * len(sampled) / alive)) if alive else wanted
            count = min(expected, most - len(sampled))

    def _chosen(
        self, role: str, carried_in: Sequence[Group], fresh: Sequence[Group]
    ) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """(groups of this step's batch, groups carried over). If useful groups are too few, groups of zero variance fill
        the batch: they are masked, and the batch keeps its size."""
        rule, size = self._rules[role].filter, self.plan.prompts_per_step
        pool = [*carried_in, *fresh]
        if not rule.resamples:
            return tuple(pool[:size]), tuple(pool[size:])
        live = [group for group in pool if rule.zero_variance_kind(group) is None]
        batch, carried_over = live[:size], live[size:]
        zero_variance = [group for group in fresh if rule.zero_variance_kind(group) is not None]
        return (*batch, *zero_variance[: size - len(batch)]), tuple(carried_over)

    def _ask(self, step: int, fresh: _Fresh, count: int) -> None:
        """Run the episodes of `count` new tasks, and group their turns."""
        tasks = self.curriculum.pick(self._n_requested, count)
        self._n_requested += count
        first = len(fresh.episodes)
        begun = [
            self.environment.reset(task, Draws(self.seed, "rollout", (step, first + index)), self._samples)
            for index, task in enumerate(tasks)
        ]
        episodes = self.runner.run(begun)
        more = self.runner.run(self.environment.supplement(episodes))
        fresh.episodes += episodes
        self._group(step, [*episodes, *more], fresh.groups)

    def _group(self, step: int, episodes: Sequence[Episode], into: dict[str, list[Group]]) -> None:
        places = [(number, turn) for number, one in enumerate(episodes) for turn in self.environment.rewarded(one)]
        rewards: list[dict[int, RewardBreakdown]] = [{} for _ in episodes]
        for reward in self.rewards.values():
            own = [(n, turn) for n, turn in places if self._reward_of[episodes[n].turns[turn].role] is reward]
            paid = reward([episodes[number].turns[turn].completion for number, turn in own])
            for (number, turn), one in zip(own, paid, strict=True):
                rewards[number][turn] = one
        for episode, paid_of in zip(episodes, rewards, strict=True):
            credits = self.environment.credit(episode, paid_of)
            for members in self.environment.groups(episode):
                if missing := [member for member in members if member not in credits]:
                    name = type(self.environment).__name__
                    raise TypeError(f"{name}.credit gives nothing for turns {missing}, which {name}.groups has")
                turns = [episode.turns[member] for member in members]
                groups = into.setdefault(turns[0].role, [])
                completions = tuple(self.environment.shown(episode, member) for member in members)
                rewarded = tuple(credits[member] for member in members)
                about = tuple(self.environment.about(episode, member) for member in members)
                groups.append(
                    Group(
                        step,
                        len(groups),
                        tuple(turn.prompt for turn in turns),
                        tuple(turn.prompt_ids for turn in turns),
                        completions,
                        rewarded,
                        self._rules[turns[0].role].shape(rewarded, completions),
                        about if any(about) else (),
                    )
                )

    @property
    def rewards(self) -> dict[str, Reward]:
        """Each reward once: `reward`, or `ROLE/reward` if there are several."""
        found = {id(reward): (role, reward) for role, reward in reversed([*self._reward_of.items()])}
        named = sorted(found.values(), key=lambda one: list(self._reward_of).index(one[0]))
        return {("reward" if len(named) == 1 else f"{role}/reward"): reward for role, reward in named}

    @property
    def parts(self) -> dict[str, Any]:
        """Objects whose state belongs to a checkpoint, by name: this collector, its rewards, its curriculum if it
        has a state, and the memory of its environment."""
        stateful = {name: part for name, part in self.rewards.items() if hasattr(part, "state_dict")}
        remembers = {"curriculum": self.curriculum} if self.curriculum.state_dict() else {}
        return {"collector": self, **stateful, **remembers, **self.environment.parts}

    def state_dict(self) -> dict[str, Any]:
        """Plain values: tasks requested so far, and the groups carried over."""
        return {"asked": self._n_requested, "waiting": [group_state(group) for group in self._carried_over]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            InputError: unknown or missing keys, or a task that is no longer in the data.
        """
        check_state(self, state, self.state_dict())
        self._n_requested = state["asked"]
        tasks = {task.id: task for task in self._tasks} if state["waiting"] else {}
        self._carried_over = tuple(group_from(group, tasks) for group in state["waiting"])

    def rollouts_from(self, state: Mapping[str, Any]) -> Rollouts:
        """The rollouts that `rollouts_state` has saved, without their episodes and observations. Raises InputError like
        `load_state_dict`."""
        tasks = {task.id: task for task in self._tasks}
        groups = {role: groups_from(own, tasks) for role, own in state["groups"].items()}
        return Rollouts(state["step"], groups, nonfinite=state["nonfinite"])

    @property
    def mix(self) -> Mapping[str, int]:
        """Tasks requested so far from each source of a mixture; empty without one."""
        return self.curriculum.sources(self._n_requested)

    def metrics(self) -> dict[str, float]:
        """Tasks requested so far in the run, and groups carried over."""
        found = {"asked": float(self._n_requested)}
        return found | ({"waiting": float(len(self._carried_over))} if self.environment.one_group else {})
