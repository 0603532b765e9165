"""Groups of verified completions whose rewards have a common baseline, and their fate in a step.

A group keeps the id that it received when it was sampled, through filtering, waiting and training: two groups of the same
task are two groups. Its members may have different prompts, as retries have; those with the same prompt are neighbours.
Groups that wait are part of a checkpoint. Nothing here samples or verifies.

The filter of a step drops, keeps or resamples groups of zero variance, by one rule for every algorithm: the largest and the
smallest reward of all its verified members are no further apart than `eps`. A deviation, a leave-one-out mask or an exact
comparison of floats would each miss cases. Such a group is `solved` (some member passed, so all did as well), `failed`, or
`errored` (no member has a verdict). The filter sees all groups of a step, the same on every rank, so that ranks never differ
in the groups that they train on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.types import STATE, Completion, RewardBreakdown, from_plain, to_plain
from rlvr_exp.tasks.base import Task

MAX_GROUPS = 1 << 20
"""An upper bound of the groups sampled in any step."""


@dataclass(frozen=True)
class Group:
    """Verified completions of one task that are compared with each other; groups may differ in size."""

    step: int
    """The step in which the group was sampled, counted from 0."""
    index: int
    """The group's index among that step's groups; samples depend on it."""
    prompts: tuple[str, ...]
    """Of each member."""
    prompt_ids: tuple[tuple[int, ...], ...]
    completions: tuple[Completion, ...]
    rewarded: tuple[RewardBreakdown, ...]
    rewards: tuple[float | None, ...]
    """Rewards that the algorithm learns from: each total after the algorithm's own shaping, None without a verdict."""
    about: tuple[Mapping[str, Any] | None, ...] = ()
    """Further log entries of the environment for each member; empty: none."""

    def __post_init__(self) -> None:
        """Raises ValueError if members are missing or belong to different tasks."""
        sizes = {len(each) for each in (self.prompts, self.prompt_ids, self.completions, self.rewarded, self.rewards)}
        if len(sizes) != 1 or not self.completions:
            raise ValueError(
                f"group {self.id}: {len(self.completions)} completions, {len(self.rewards)} rewards, "
                f"{len(self.prompts)} prompts; resample the group"
            )
        tasks = {completion.task.id for completion in self.completions}
        if len(tasks) != 1:
            raise ValueError(
                f"group {self.id}: completions of {len(tasks)} tasks ({sorted(tasks)[:3]}); one task a group"
            )

    @property
    def id(self) -> int:
        """Unique within a run."""
        return self.step * MAX_GROUPS + self.index

    @property
    def n_no_verdict(self) -> int:
        """Members without a verdict."""
        return sum(reward is None for reward in self.rewards)


@dataclass(frozen=True)
class Groups:
    """The groups of one step, counted from 0."""

    step: int
    batch: tuple[Group, ...]
    """The groups that the step trains on; groups carried in from earlier steps come first."""
    sampled: tuple[Group, ...]
    """Groups sampled in this step, in the order of their indices."""
    carried_in: tuple[Group, ...]
    """Groups from earlier steps that were waiting when this step began."""
    carried_over: tuple[Group, ...]
    """Groups that wait for later steps."""
    zero_variance: Mapping[int, str]
    """Kind (solved, failed, errored) of every group without variance in its rewards, by id."""
    seconds: Mapping[str, float]
    """Wall seconds of each phase: generate, verify. Empty where nothing was sampled."""

    @property
    def settled(self) -> tuple[Group, ...]:
        """Groups whose fate was decided in this step: carried in or sampled, and not carried over."""
        later = {group.id for group in self.carried_over}
        return tuple(group for group in (*self.carried_in, *self.sampled) if group.id not in later)

    @property
    def at_hand(self) -> tuple[Group, ...]:
        """Groups sampled in this step, and groups sampled earlier that it trains on."""
        return (*(group for group in self.batch if group.step != self.step), *self.sampled)


def members(groups: Sequence[Group]) -> int:
    return sum(len(group.completions) for group in groups)


def check_groups(groups: Sequence[Group], group_size: int) -> None:
    """Raises ValueError unless every group has exactly `group_size` members and a unique id."""
    odd = [group.id for group in groups if len(group.completions) != group_size]
    if odd:
        raise ValueError(f"groups {odd[:3]} do not have the {group_size} members that were requested")
    if len({group.id for group in groups}) != len(groups):
        raise ValueError("two groups share an id: a group would be trained on twice")


SOLVED, FAILED, ERRORED = ZERO_VARIANCE_KINDS = ("solved", "failed", "errored")
MODES = ("keep", "mask", "resample")


@dataclass(frozen=True)
class GroupFilter:
    """
    Args:
        mode: "keep" leaves groups of zero variance in the loss's denominators, "mask" takes them out, "resample" takes
            them out and samples other tasks in their place.
        eps: the largest spread of rewards that counts as zero variance.
        budget: with "resample": the most groups sampled for one batch, as a multiple of the batch.
    """

    mode: str
    eps: float
    budget: int = 1

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"GroupFilter: mode is {self.mode!r}, allowed {', '.join(MODES)}")

    @property
    def resamples(self) -> bool:
        return self.mode == "resample"

    def zero_variance_kind(self, group: Group) -> str | None:
        """One of ZERO_VARIANCE_KINDS; None for a group whose rewards vary."""
        judged = [reward for reward in group.rewards if reward is not None]
        if spread(judged) > self.eps:
            return None
        if not judged:
            return ERRORED
        return SOLVED if any(completion.verdict.outcome == "passed" for completion in group.completions) else FAILED

    def masks(self, group: Group) -> bool:
        """Whether the group stays out of the loss and its denominators."""
        return self.mode != "keep" and self.zero_variance_kind(group) is not None


def spread(rewards: Sequence[float]) -> float:
    """max - min; zero for no rewards."""
    return max(rewards) - min(rewards) if rewards else 0.0


KEYS = {"step", "index", "task", "family", "prompts", "completions", "rewarded", "rewards"}


def group_state(group: Group) -> dict[str, Any]:
    """The group as values that JSON can hold; the task only by its id and family."""
    task, plain = group.completions[0].task, map(to_plain, group.completions)
    pairs = zip(group.prompts, group.prompt_ids, strict=True)
    about = {"about": list(group.about)} if group.about else {}
    return about | {
        "step": group.step,
        "index": group.index,
        "task": task.id,
        "family": task.family,
        "prompts": [[text, list(ids), len(list(same))] for (text, ids), same in groupby(pairs)],
        "completions": [{name: values[name] for name in STATE} for values in plain],
        "rewarded": [vars(one) for one in group.rewarded],
        "rewards": list(group.rewards),
    }


def group_from(state: Mapping[str, Any], tasks: Mapping[str, Task] | None = None) -> Group:
    """The group of a state.

    Args:
        tasks: the tasks of the data by id; None: only id and family of the group's task are known.

    Raises:
        InputError: unknown or missing keys, or the group's task is no longer in the data.
    """
    if set(state) - {"about"} != KEYS:
        got, allowed = ", ".join(sorted(state)), ", ".join(sorted(KEYS))
        remedy = "resume with the version that wrote the checkpoint"
        raise InputError(InputProblem("state of a group", "has other keys", got, allowed, remedy=remedy))
    task = None if tasks is None else tasks.get(state["task"])
    if tasks is not None and task is None:
        what, remedy = "the task of a waiting group is gone", "resume with the data that the run was started with"
        raise InputError(InputProblem("data", what, state["task"], remedy=remedy))
    prompts = [(text, tuple(ids)) for text, ids, count in state["prompts"] for _ in range(count)]
    return Group(
        step=state["step"],
        index=state["index"],
        prompts=tuple(text for text, _ in prompts),
        prompt_ids=tuple(ids for _, ids in prompts),
        completions=tuple(from_plain({**state, **one}, task) for one in state["completions"]),
        rewarded=tuple(RewardBreakdown(**one) for one in state["rewarded"]),
        rewards=tuple(state["rewards"]),
        about=tuple(state.get("about", ())),
    )


PARTS = ("batch", "sampled", "carried_in", "carried_over")


def groups_state(groups: Groups) -> dict[str, Any]:
    """The groups of a step as values that JSON can hold, each group once."""
    every = {group.id: group for name in PARTS for group in getattr(groups, name)}
    return {
        "step": groups.step,
        "groups": [group_state(group) for group in every.values()],
        **{name: [group.id for group in getattr(groups, name)] for name in PARTS},
        "zero_variance": [*groups.zero_variance.items()],
        "seconds": dict(groups.seconds),
    }


def groups_from(state: Mapping[str, Any], tasks: Mapping[str, Task]) -> Groups:
    """The groups of a state. Raises InputError like `group_from`."""
    every = {group.id: group for group in (group_from(one, tasks) for one in state["groups"])}
    parts = {name: tuple(every[number] for number in state[name]) for name in PARTS}
    return Groups(state["step"], **parts, zero_variance=dict(state["zero_variance"]), seconds=state["seconds"])
