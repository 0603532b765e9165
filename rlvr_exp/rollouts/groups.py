"""What was sampled: groups of judged answers to one prompt, and what became of them in a step.

A group keeps the id that it was given when it was sampled, through filtering, waiting and training: two groups of one
prompt are two groups. Owns the books of a step's samples on the sampling side. Never samples or judges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.rewards.compose import RewardBreakdown
from rlvr_exp.rollouts.completion import Completion

MAX_GROUPS = 1 << 20
"""More groups than any step samples."""


@dataclass(frozen=True)
class Group:
    """Judged answers to one prompt, sampled together."""

    step: int
    """The step that it was sampled in, counted from 0."""
    index: int
    """Which of that step's groups it is; draws depend on it."""
    prompt: str
    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    rewarded: tuple[RewardBreakdown, ...]
    rewards: tuple[float | None, ...]
    """What the algorithm learns from: each total after the algorithm's own shaping, None without a verdict."""

    def __post_init__(self) -> None:
        """Raises ValueError where members are missing or answer different tasks."""
        if not len(self.completions) == len(self.rewarded) == len(self.rewards):
            raise ValueError(
                f"group {self.id}: {len(self.completions)} completions, {len(self.rewards)} rewards; sample it again"
            )
        tasks = {completion.task.id for completion in self.completions}
        if len(tasks) != 1:
            raise ValueError(
                f"group {self.id}: completions of {len(tasks)} tasks ({sorted(tasks)[:3]}); one prompt a group"
            )

    @property
    def id(self) -> int:
        """Unique in a run."""
        return self.step * MAX_GROUPS + self.index

    @property
    def n_no_verdict(self) -> int:
        """Members without a verdict."""
        return sum(reward is None for reward in self.rewards)


@dataclass(frozen=True)
class Groups:
    """One step's groups, counted from 0."""

    step: int
    batch: tuple[Group, ...]
    """What the step is to learn from; groups sampled earlier, which waited, come first."""
    sampled: tuple[Group, ...]
    """What was sampled in this step, in the order of its places."""
    carried_in: tuple[Group, ...]
    """What waited when the step began."""
    carried_over: tuple[Group, ...]
    """What waits for later steps."""
    zero_variance: Mapping[int, str]
    """Kind (solved, failed, errored) of every group, by id, that has nothing to teach."""
    seconds: Mapping[str, float]
    """Wall seconds of each phase: generate, verify. Empty where nothing was sampled."""

    @property
    def settled(self) -> tuple[Group, ...]:
        """Groups whose fate this step decided: all it had, less what waits."""
        later = {group.id for group in self.carried_over}
        return tuple(group for group in (*self.carried_in, *self.sampled) if group.id not in later)

    @property
    def at_hand(self) -> tuple[Group, ...]:
        """Groups sampled in this step, and those sampled earlier that it learns from."""
        return (*(group for group in self.batch if group.step != self.step), *self.sampled)


def members(groups: Sequence[Group]) -> int:
    return sum(len(group.completions) for group in groups)


def check_groups(groups: Sequence[Group], group_size: int) -> None:
    """Raises ValueError unless every group has exactly `group_size` members and an id of its own."""
    odd = [group.id for group in groups if len(group.completions) != group_size]
    if odd:
        raise ValueError(f"groups {odd[:3]} have not the {group_size} members that were asked for")
    if len({group.id for group in groups}) != len(groups):
        raise ValueError("two groups share one id: a group would be learned from twice")
