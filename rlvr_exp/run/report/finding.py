"""One reason why a run does not learn, with its evidence. Found by the diagnosis_* files, ranked by diagnosis."""

from dataclasses import dataclass
from enum import IntEnum

from rlvr_exp.run.rollout_files import VerifiedCompletion


class Weight(IntEnum):
    """How much of a run a finding accounts for."""

    NOTE = 0
    """Worth knowing; no reason not to learn."""
    HOLDS_BACK = 1
    """Costs a good part of what could be learned."""
    BLOCKS = 2
    """Nothing, or nothing right, can be learned while it lasts."""


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
    """The step in which it was first seen; 0: it was so from the start."""
    samples: tuple[VerifiedCompletion, ...] = ()


def weigh(low: float, blocks: float, holds_back: float) -> Weight | None:
    """The weight of a share by the low end of its interval, so that few samples raise no alarm; None below both."""
    if low >= blocks:
        return Weight.BLOCKS
    return Weight.HOLDS_BACK if low >= holds_back else None
