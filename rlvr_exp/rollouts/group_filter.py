"""Which groups have no variance in their rewards, and what happens to them: one rule for every algorithm.

A group has zero variance when the largest and the smallest reward of all its verified members are no further apart than
`eps`; a deviation, a leave-one-out mask or an exact comparison of floats would each miss cases. Such a group is `solved`
(some member passed, so all did as well), `failed`, or `errored` (no member has a verdict). The filter sees all groups of
a step, the same on every rank, so that ranks never differ in what they train on. Holds no state.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.rollouts.groups import Group

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
