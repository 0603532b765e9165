"""95% intervals of means over tasks or groups, for the report's own counts.

The evaluation room, which has its own intervals, is above this room.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from rlvr_exp.run.report.series import bins
from rlvr_exp.run.report.step_counts import StepCounts

MOST_BANDS = 40


@dataclass(frozen=True)
class Mean:
    value: float
    low: float
    high: float
    n: int


def mean(values: Sequence[float]) -> Mean:
    """A mean with its t-interval; for a single value, or for equal values, the interval is empty."""
    from scipy import stats  # Heavy, and wanted only where a report is written.

    if len(values) < 2 or min(values) == max(values):
        return Mean(values[0], values[0], values[0], len(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Mean(fmean(values), fmean(values) - half, fmean(values) + half, len(values))


def rate(values: Sequence[float]) -> Mean:
    """A mean of values in [0, 1], clipped to that; where all are 0, or all 1, the exact (Clopper-Pearson) bound."""
    found = mean(values)
    if found.low == found.high and found.value in (0.0, 1.0):
        unseen = 1 - 0.025 ** (1 / len(values))
        return Mean(found.value, found.value * (1 - unseen), found.value + (1 - found.value) * unseen, len(values))
    return Mean(found.value, max(0.0, found.low), min(1.0, found.high), found.n)


def band(
    step_counts: Sequence[StepCounts], read: Callable[[StepCounts], Sequence[float]], share: bool
) -> list[tuple[float, float, float]]:
    """(step, low, high): the interval of the mean over groups, pooled over equal runs of steps; `share`: of values in [0, 1]."""
    drawn = []
    for run in bins(len(step_counts), MOST_BANDS):
        values = [value for i in run for value in read(step_counts[i])]
        if len(values) > 1:
            found = rate(values) if share else mean(values)
            middle = fmean((step_counts[run[0]].step, step_counts[run[-1]].step))
            drawn.append((middle, found.low, found.high))
    return drawn
