"""Ratios of paired measurements with their intervals, and the table that shows them. Pure functions of numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """How many times faster, with its 95% interval; `n` pairs."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def of_rounds(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Geometric mean of theirs/ours over paired rounds, both in seconds; a t-interval on the logarithms.

    Raises:
        ValueError: fewer than two pairs, or sides of different length.
    """
    logs = [math.log(other / own) for own, other in zip(ours, theirs, strict=True)]
    if len(logs) < 2:
        raise ValueError(f"of_rounds: got {len(logs)} pairs; an interval needs at least two")
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    centre = fmean(logs)
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half), len(logs))


def of_programs(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Median of theirs/ours over programs, each timed on both sides; the exact order-statistics interval.

    The interval runs between the order statistics whose binomial coverage is at least 95% (for fewer than six
    programs: between the extremes).

    Raises:
        ValueError: no programs, or sides of different length.
    """
    ratios = sorted(other / own for own, other in zip(ours, theirs, strict=True))
    if not ratios:
        raise ValueError("of_programs: got no programs")
    below = max(0, int(stats.binom.ppf((1 - CONFIDENCE) / 2, len(ratios), 0.5)) - 1)
    return Ratio(median(ratios), ratios[below], ratios[-1 - below], len(ratios))
