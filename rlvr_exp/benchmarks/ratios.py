"""Ratios of paired measurements with their intervals, and the table that shows them. Pure functions of numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.core.statistics import median_interval, t_interval


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
    value, low, high = map(math.exp, t_interval(logs))
    return Ratio(value, low, high, len(logs))


def of_programs(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Median of theirs/ours over programs, each timed on both sides; the exact order-statistics interval.

    Raises:
        ValueError: no programs, or sides of different length.
    """
    ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
    return Ratio(*median_interval(ratios), len(ratios))
