"""A reason why a run does not learn, with its evidence. Found by the diagnosis_* modules, ranked by diagnosis."""

from dataclasses import dataclass
from enum import IntEnum

from rlvr_exp.records.rollout_files import RolloutRow


class Weight(IntEnum):
    """How much of the problem a finding accounts for."""

    NOTE = 0
    """Worth knowing; no reason not to learn."""
    HOLDS_BACK = 1
    """Costs a good part of the possible learning."""
    BLOCKS = 2
    """Nothing, or nothing right, can be learned because of it."""


@dataclass(frozen=True)
class Finding:
    """A cause, named as in docs/report.md."""

    cause: str
    title: str
    """One line, with the count."""
    why: str
    """What the numbers show."""
    remedy: str
    weight: Weight
    onset: int = 0
    """The step in which it was first observed; 0: from the start."""
    samples: tuple[RolloutRow, ...] = ()


def weigh(low: float, blocks: float, holds_back: float) -> Weight | None:
    """The weight of a share by the low end of its interval, so that few samples raise no alarm; None below both
    thresholds."""
    if low >= blocks:
        return Weight.BLOCKS
    return Weight.HOLDS_BACK if low >= holds_back else None
