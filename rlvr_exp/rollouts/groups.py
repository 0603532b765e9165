"""Groups of verified completions whose rewards have a common baseline, and their fate in a step.

A group keeps the id that it received when it was sampled, through filtering, waiting and training: two groups of the same
task are two groups. Its members may have different prompts, as retries have; those with the same are neighbours. Accounts for a step's samples on the sampling side. Never samples or verifies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.episodes.types import Completion, RewardBreakdown

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
    """What the environment logs of each member besides its completion; empty: nothing."""

    def __post_init__(self) -> None:
        """Raises ValueError where members are missing or belong to different tasks."""
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
