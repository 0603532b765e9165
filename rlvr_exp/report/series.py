"""Prepares numbers for charts: round axes, running means, bins. Pure functions; knows no HTML."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlvr_exp.core.statistics import mean_interval, t_interval
from rlvr_exp.report.step_counts import StepCounts

Values = Sequence[float | None]

MOST_POINTS = 400
"""Most points of a curve; longer curves are shown as means of equal runs of steps, so that the page stays small."""
MOST_BANDS = 40


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


_FLAT = 1e-11
"""A smaller spread counts as none: ticks are distinguished by 12 decimals."""


def value_axis(values: Sequence[float], count: int = 4) -> Axis:
    """An axis with round ends; from 0 unless the values' spread requires less."""
    low, high = min(values), max(values)
    if 0 <= low <= 0.6 * high or low == high > 0:
        low = 0.0
    if high - low < _FLAT:
        low, high = (0.0, 1.0) if abs(high) < _FLAT else (low - abs(low), high + abs(high))
    size = _round_step((high - low) / count)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return Axis(first * size, last * size, tuple(round(i * size, 12) for i in range(first, last + 1)))


def step_axis(steps: Sequence[int], count: int = 5) -> Axis:
    """An axis from the first step to the last, with round integer ticks between."""
    low, high = steps[0], max(steps[-1], steps[0] + 1)
    size = max(1, round(_round_step((high - low) / count)))
    ticks = range(math.ceil(low / size) * size, high + 1, size)
    return Axis(low, high, tuple(ticks))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(nice * power for nice in (1, 2, 5, 10) if nice * power >= rough * (1 - 1e-9))


def running_mean(values: Values) -> list[float | None]:
    """Centred mean over about a twentieth of the curve, nearer points weighing more; None stays None."""
    reach = max(2, len(values) // 40)
    smooth: list[float | None] = []
    for i, value in enumerate(values):
        window = range(max(0, i - reach), min(len(values), i + reach + 1))
        near = [(reach + 1 - abs(k - i), other) for k in window if (other := values[k]) is not None]
        weight = sum(weight for weight, _ in near)
        smooth.append(None if value is None else sum(weight * v for weight, v in near) / weight)
    return smooth


def bins(count: int, most: int) -> list[range]:
    """`count` indices in at most `most` runs of equal length, the last run perhaps shorter."""
    size = max(1, math.ceil(count / most))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def band(
    step_counts: Sequence[StepCounts], read: Callable[[StepCounts], Sequence[float]], share: bool
) -> list[tuple[float, float, float]]:
    """(step, low, high): the interval of the mean over groups, pooled over equal runs of steps; `share`: of values in [0, 1]."""
    drawn = []
    for run in bins(len(step_counts), MOST_BANDS):
        values = [value for i in run for value in read(step_counts[i])]
        if len(values) > 1:
            _, low, high = mean_interval(values) if share else t_interval(values)
            drawn.append((fmean((step_counts[run[0]].step, step_counts[run[-1]].step)), low, high))
    return drawn


def thinned(steps: Sequence[int], columns: Mapping[str, Values]) -> tuple[list[int], dict[str, list[float | None]]]:
    """At most MOST_POINTS points: each bin's middle step and mean."""
    parts = bins(len(steps), MOST_POINTS)
    middles = [steps[part[len(part) // 2]] for part in parts]
    return middles, {name: [_mean(values[i] for i in part) for part in parts] for name, values in columns.items()}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def short(value: float) -> str:
    """At most four significant digits, in a readable form."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
