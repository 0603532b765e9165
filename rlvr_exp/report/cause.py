"""A row of the table of causes, and what becomes of it where its evidence is found.

A row says what is measured, the thresholds, what is said, what to try and which other causes it explains. The rows stand
in rlvr_exp.report.causes, in the order of the pipeline; rlvr_exp.report.diagnosis ranks what is found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.evidence import Evidence, Share, onset, recent, share, some
from rlvr_exp.report.step_counts import StepCounts

BY_ITSELF = 9
"""Rank of a cause that the others of its time may have brought about."""


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
    """A cause that was found, named as in docs/report.md."""

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


@dataclass(frozen=True)
class Sign:
    """What was measured of a cause."""

    share: Share = Share(0, 0)
    """How often; held against the thresholds by the low end of its interval, so that few samples raise no alarm."""
    weight: Weight | None = None
    """Where no share decides."""
    onset: int | Callable[[float], int] = 0
    """The step, or how to find it from the threshold that holds back."""
    rows: Sequence[RolloutRow] = ()
    """Completions that show it; a few are kept."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and words for the texts."""


@dataclass(frozen=True)
class Cause:
    """A row. The texts are format strings of the sign's facts, `share`, and `option[PATH]` of the run."""

    name: str
    measure: Callable[[Evidence], Sign | None]
    title: str
    why: str
    remedy: str
    levels: tuple[float, float] = (2.0, 2.0)
    """Shares from which it blocks learning, and holds it back; a share is below 2."""
    explains: tuple[str, ...] = ()
    """Causes that are not said beside this one: they are its effects, or the same numbers seen from elsewhere."""
    alone: bool = False
    """Said only where nothing else is, but for what began later and drives nothing."""
    later: int = BY_ITSELF
    """Rank among causes that began during a run: the updates first, then what fools them, then what they do."""

    def find(self, seen: Evidence) -> Finding | None:
        sign = self.measure(seen)
        weight = None if sign is None else weigh(sign, *self.levels)
        if sign is None or weight is None:
            return None
        facts = {"share": sign.share, **sign.facts, "option": _Options(seen)}
        title, why, remedy = (" ".join(text.format_map(facts).split()) for text in (self.title, self.why, self.remedy))
        begun = sign.onset if isinstance(sign.onset, int) else sign.onset(self.levels[1])
        return Finding(self.name, title, why, remedy, weight, begun, some(sign.rows))


def weigh(sign: Sign, blocks: float, holds_back: float) -> Weight | None:
    """The weight of what was measured; None below both thresholds."""
    if sign.weight is not None or not sign.share.of:
        return sign.weight
    if sign.share.low >= blocks:
        return Weight.BLOCKS
    return Weight.HOLDS_BACK if sign.share.low >= holds_back else None


@dataclass(frozen=True)
class Counted:
    """Measures the share of the last completions, or groups, that are counted.

    Args:
        count: of a step.
        shows: the completions that show it.
        of: what is counted: samples or groups; groups are those of training alone.
    """

    count: Callable[[StepCounts], int]
    shows: Callable[[RolloutRow], bool]
    of: str = "samples"

    def __call__(self, seen: Evidence) -> Sign:
        series = seen.series if self.of == "samples" else seen.step_counts
        return Sign(
            share(recent(series, self.of), self.count, self.of),
            onset=lambda least: onset(series, self.count, least, self.of),
            rows=list(filter(self.shows, seen.samples)),
        )


@dataclass(frozen=True)
class _Options:
    seen: Evidence

    def __getitem__(self, path: str) -> Any:
        return self.seen.option(path)
