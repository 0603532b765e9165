"""The form of a cause: a measure of the evidence with thresholds, texts, remedies, and the other causes that it explains.

The causes stand in rlvr_exp.report.causes, in the order of the pipeline.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.data import StepCounts
from rlvr_exp.report.evidence import Evidence, Share, onset, recent, share, some
from rlvr_exp.report.remedies import Remedy, remedies

BY_ITSELF = 9
"""Rank of a cause that may be an effect of other causes of the same time."""


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
    remedies: tuple[Remedy, ...]
    """Options of the next run."""
    advice: str
    """What else to do."""
    weight: Weight
    effect: float = 1.0
    """Part of the learning that it costs, between 0 and 1."""
    onset: int = 0
    """The step of the first observation; 0: from the start."""
    samples: tuple[RolloutRow, ...] = ()


@dataclass(frozen=True)
class Sign:
    """The measurement of a cause."""

    share: Share = Share(0, 0)
    """Its frequency. The low end of its interval is compared with the thresholds, so that few samples raise no alarm."""
    weight: Weight | None = None
    """The weight if no share decides."""
    onset: int | Callable[[float], int] = 0
    """The step, or how to find it from the threshold that holds back."""
    rows: Sequence[RolloutRow] = ()
    """Completions that show it; a few are kept."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and words for the texts."""
    effect: float | None = None
    """Part of the learning that it costs. None: the share, or by the weight."""


@dataclass(frozen=True)
class Cause:
    """A row. The texts are format strings of the sign's facts, `share`, and `option[PATH]` of the run."""

    name: str
    measure: Callable[[Evidence], Sign | None]
    title: str
    why: str
    advice: str = ""
    """What to do besides the remedies. It names no option, because a stage might refuse it."""
    remedies: Callable[[Evidence], Mapping[str, Any]] = lambda seen: {}
    """Proposed options with values computed from the run. Those that its stage refuses are left out."""
    levels: tuple[float, float] = (2.0, 2.0)
    """Least shares that block learning, and that slow it. 2 is never reached."""
    explains: tuple[str, ...] = ()
    """Causes that this one replaces: its effects, or the same numbers in other evidence."""
    alone: bool = False
    """Reported only if no other cause from the start, or of the updates, was found."""
    later: int = BY_ITSELF
    """Rank among causes that began during a run: updates first, then their inputs, then their effects."""
    by_outcome: bool = False
    """Its evidence is a change of success, so that enough held-out tasks are needed."""
    doubts: bool = False
    """It makes a rise of success itself doubtful."""

    def find(self, seen: Evidence) -> Finding | None:
        if self.by_outcome and seen.blind:
            return None
        sign = self.measure(seen)
        weight = None if sign is None else weigh(sign, *self.levels)
        if sign is None or weight is None:
            return None
        if seen.rose and seen.power is not None and not self.doubts:
            # Held-out success rose: it did not block learning. A large share still costs a good part of it.
            weight = Weight.HOLDS_BACK if weight is Weight.BLOCKS else Weight.NOTE
        effect = sign.effect
        if effect is None:
            effect = sign.share.value if sign.share.of else weight / Weight.BLOCKS
        facts = {"share": sign.share, **sign.facts, "option": _Options(seen)}
        title, why, advice = (" ".join(text.format_map(facts).split()) for text in (self.title, self.why, self.advice))
        begun = sign.onset if isinstance(sign.onset, int) else sign.onset(self.levels[1])
        options = remedies(seen.config, self.remedies(seen))
        return Finding(self.name, title, why, options, advice, weight, effect, begun, some(sign.rows))


def weigh(sign: Sign, blocks: float, holds_back: float) -> Weight | None:
    """The weight of a measurement; None below both thresholds."""
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
        of: the counted items: samples, or groups of the training.
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
