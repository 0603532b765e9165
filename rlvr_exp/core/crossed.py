"""Estimates with 95% intervals from values of seeds x tasks: the seeds are drawn from all seeds, the tasks from all tasks.

`values[seed][task]` holds the same tasks for every seed. A value is an overall mean, an effect of its seed, an effect of
its task and a rest; an estimate's variance is that of all three, so that neither many tasks nor many seeds alone make an
interval narrow. How often the intervals hold the truth is measured (docs/statistics.md). Pure functions of numbers.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from statistics import fmean, variance
from typing import NamedTuple

from rlvr_exp.core.statistics import CONFIDENCE, POWER, Estimate, mean_interval

Values = Sequence[Sequence[float]]
"""By seed, then by task."""
TRIMMED = 0.25
"""Share of the values that an interquartile mean leaves out at either end."""
MOST_FREEDOM = 1000.0
"""From this number of degrees of freedom on, the quantiles hardly change."""
ROUNDING = 1e-24
"""A variance is 0 that is not above this share of the mean square of the values."""
TIE = 1e-12
"""Two variances are equal that differ by no more than this share."""
POINTS = 32
"""Number of quantiles for the integral over the spread of an estimated error."""


class Spread(NamedTuple):
    """A mean, its standard error and the degrees of freedom of the error's square."""

    mean: float
    error: float
    freedom: float

    @property
    def half(self) -> float:
        """Half the width of the 95% interval."""
        return _quantile((1 + CONFIDENCE) / 2, self.freedom) * self.error


class Layout(NamedTuple):
    """Mean squares of a two-way layout with one value a cell; those that a single seed or task has not are 0."""

    mean: float
    seeds: int
    tasks: int
    between_seeds: float
    between_tasks: float
    rest: float

    @property
    def surplus(self) -> float:
        """Variance between seeds beyond the rest; 0 if they are equal except for rounding."""
        surplus = self.between_seeds - self.rest
        return surplus if surplus > TIE * self.between_seeds else 0.0

    @property
    def freedoms(self) -> tuple[int, int, int]:
        return self.seeds - 1, self.tasks - 1, (self.seeds - 1) * (self.tasks - 1)


def layout(values: Values) -> Layout:
    """The analysis of variance of values by seed and task.

    Raises:
        ValueError: no values, or seeds with other numbers of tasks.
    """
    seeds, tasks = _shape(values)
    by_seed, by_task = [fmean(row) for row in values], [fmean(column) for column in zip(*values, strict=True)]
    mean = fmean(by_seed)
    of_seeds, of_tasks = tasks * _squares(by_seed, mean), seeds * _squares(by_task, mean)
    of_rest = max(0.0, sum(_squares(row, mean) for row in values) - of_seeds - of_tasks)
    squares = [of_seeds, of_tasks, of_rest]
    freedoms = Layout(mean, seeds, tasks, *squares).freedoms
    return Layout(mean, seeds, tasks, *(part / (df or 1) for part, df in zip(squares, freedoms, strict=True)))


def crossed(values: Values) -> Spread:
    """The mean over seeds and tasks, both random effects.

    The squared error is MS_task/(ST) + max(0, MS_seed - MS_rest)/(ST): that of the task means, plus the excess of the
    seeds' differences over the rest, over S. Searle, Casella and McCulloch, "Variance Components" (1992), chapter 4;
    the degrees of freedom are Satterthwaite's (1946). With one seed it is Student's over tasks.

    Raises:
        ValueError: no values, or seeds with other numbers of tasks.
    """
    found = layout(values)
    seeds, tasks, rest = found.freedoms
    parts = [(found.between_tasks, tasks)]
    if found.surplus:
        parts += [(found.between_seeds, seeds), (found.rest, rest)]
    return _spread(found, parts)


def _spread(found: Layout, parts: Sequence[tuple[float, int]]) -> Spread:
    """Of mean squares with their degrees of freedom, as they count in the error. One task shows no spread, as equal
    values do."""
    squared = found.between_tasks + found.surplus
    if found.tasks == 1 or squared <= ROUNDING * (found.mean**2 + found.rest + squared):
        return Spread(found.mean, 0.0, 1.0)
    freedom = 1 / math.fsum((part / squared) ** 2 / df for part, df in parts if df)  # Squares of tiny parts would be 0.
    return Spread(found.mean, math.sqrt(squared / (found.seeds * found.tasks)), freedom)


def crossed_mean(values: Values, floor: float = 0.0, ceiling: float = 1.0) -> Estimate:
    """The mean of values in [floor, ceiling]; if nothing spreads, with the exact bound of `mean_interval`.

    Raises:
        ValueError: no values, or seeds with other numbers of tasks.
    """
    found = crossed(values)
    if found.error == 0.0:
        return mean_interval([found.mean] * len(values[0]), floor, ceiling)  # Equal but for their rounding.
    return Estimate(found.mean, max(floor, found.mean - found.half), min(ceiling, found.mean + found.half))


def crossed_iqm(values: Values) -> Estimate:
    """The interquartile mean of all values (Agarwal et al. 2021, arXiv:2108.13264). A few extreme values do not move
    it.

    Its error is that of the mean of the winsorised values, over the share that is kept (Tukey and McLaughlin 1963).

    Raises:
        ValueError: no values, or seeds with other numbers of tasks.
    """
    _shape(values)
    ordered = sorted(value for row in values for value in row)
    cut = int(TRIMMED * len(ordered))
    low, high = ordered[cut], ordered[-cut - 1]
    kept = 1 - 2 * TRIMMED
    half = crossed([[min(max(value, low), high) / kept for value in row] for row in values]).half
    middle = fmean(ordered[cut : len(ordered) - cut])
    return Estimate(middle, middle - half, middle + half)


def crossed_median(values: Values) -> Estimate:
    """The median of all values, between the quantiles that the interval of the share below it names (Woodruff 1952).

    Raises:
        ValueError: no values, or seeds with other numbers of tasks.
    """
    _shape(values)
    ordered = sorted(value for row in values for value in row)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    half = crossed([[0.5 * ((value < middle) + (value <= middle)) for value in row] for row in values]).half
    below, above = math.floor(n * (0.5 - half)), math.ceil(n * (0.5 + half)) - 1
    return Estimate(middle, min(middle, ordered[max(0, below)]), max(middle, ordered[min(n - 1, above)]))


def crossed_ratio(first: Values, second: Values) -> Estimate:
    """The mean of the second over that of the first, paired by seed and task; its error by linearisation (the delta
    method; Cochran, "Sampling Techniques", 1977, section 6.3).

    Raises:
        ValueError: no values, other seeds or tasks on the two sides, or a first mean of 0.
    """
    _refuse_other_shape(first, second)
    below = fmean(fmean(row) for row in first)
    if below == 0.0:
        raise ValueError("crossed_ratio: the first mean is 0, so that there is no ratio to it")
    ratio = fmean(fmean(row) for row in second) / below
    off = [[(b - ratio * a) / below for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]
    half = crossed(off).half
    return Estimate(ratio, ratio - half, ratio + half)


def differences(first: Values, second: Values) -> list[list[float]]:
    """Second minus first, paired by seed and task.

    Raises:
        ValueError: no values, or other seeds or tasks on the two sides.
    """
    _refuse_other_shape(first, second)
    return [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


def p_value(changes: Values, reach: float = 1.0) -> float:
    """Of no difference, for differences in [-reach, reach], two-sided: below 0.05 exactly where the interval of
    `crossed_mean` leaves out 0. If nothing spreads and the reach is infinite it is 1."""
    found = crossed(changes)
    if found.error == 0.0:  # The level at which the exact bound on the tasks that were not seen reaches 0.
        return min(1.0, 2 * (1 + abs(found.mean) / reach) ** -len(changes[0]))
    from scipy import stats

    return float(2 * stats.t.sf(abs(found.mean) / found.error, found.freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected for that many are compared, each in its place (Holm 1979): the chance of any false finding stays below
    the level."""
    corrected, most = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = most
    return corrected


def smallest_found(changes: Values, reach: float = 1.0) -> float:
    """The smallest true difference, of differences in [-reach, reach], that a study like this one finds in 80 of 100
    repetitions.

    An estimated error is itself uncertain, in this study and in the repetition: the power is the mean over both (the
    assurance of O'Hagan, Stevens and Campbell 2005). Seeds count with their full share of the degrees of freedom, even
    if these few happened to agree. If nothing spreads, the result is the width of the exact bound.
    """
    found = layout(changes)
    squares = found.between_seeds, found.between_tasks, found.rest
    spread = _spread(found, list(zip(squares, found.freedoms, strict=True)))
    if spread.error == 0.0:
        interval = crossed_mean(changes, -reach, reach)
        return max(interval.high - interval.value, interval.value - interval.low)
    return _errors_needed(round(min(max(spread.freedom, found.seeds - 1.0), MOST_FREEDOM), 1)) * spread.error


@lru_cache
def _errors_needed(freedom: float) -> float:
    """The true difference in estimated errors that a second study finds with the wanted chance."""
    from scipy import optimize, special, stats

    shares = [(place + 0.5) / POINTS for place in range(POINTS)]
    factors = [math.sqrt(float(value) / freedom) for value in stats.chi2.ppf(shares, freedom)]
    needed = [_quantile((1 + CONFIDENCE) / 2, freedom) * factor for factor in factors]

    def short_by(errors: float) -> float:
        return POWER - fmean(float(special.ndtr(errors * own - other)) for own in factors for other in needed)

    return float(optimize.brentq(short_by, 0.0, 1000.0, xtol=1e-3))


@lru_cache
def _quantile(level: float, freedom: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, level))


def _squares(values: Sequence[float], mean: float) -> float:
    off = [value - mean for value in values]
    return sum(map(mul, off, off))


def _shape(values: Values) -> tuple[int, int]:
    counts = sorted({len(row) for row in values})
    if len(counts) != 1 or counts[0] == 0:
        got = f"{len(values)} seeds with {' and '.join(map(str, counts)) or 'no'} tasks"
        raise ValueError(f"values of seeds x tasks: got {got}, allowed the same tasks for every seed, at least one")
    return len(values), counts[0]


def _refuse_other_shape(first: Values, second: Values) -> None:
    if (one := _shape(first)) != (other := _shape(second)):
        raise ValueError(f"paired by seed and task: got (seeds, tasks) {one} and {other}, allowed the same")


class FoldSpread(NamedTuple):
    """Variances of a run's value over the folds of a cross-validation and the seeds of its runs."""

    mean: float
    of_folds: float
    """Sample variance of the folds' means: folds and seeds together."""
    between_seeds: float | None
    """Mean over folds of the sample variance of its seeds; None of one seed."""
    between_folds: float | None
    """`of_folds` without the part of its seeds, at least 0; None for a single seed."""


def fold_spread(values: Values) -> FoldSpread:
    """Variances from a value for each fold and each of its seeds, seeds nested in folds (the one-way random model of Searle,
    Casella and McCulloch 1992, chapter 3). Folds share most of their training tasks, so that no estimate of how far another
    data set would be off is unbiased (Bengio and Grandvalet 2004).

    Raises:
        ValueError: fewer than two folds, or folds with other numbers of seeds.
    """
    folds, seeds = _shape(values)
    if folds < 2:
        raise ValueError(f"fold_spread: got {folds} fold, allowed 2 and more")
    means = [fmean(row) for row in values]
    of_folds = variance(means)
    if seeds == 1:
        return FoldSpread(fmean(means), of_folds, None, None)
    between_seeds = fmean(variance(row) for row in values)
    return FoldSpread(fmean(means), of_folds, between_seeds, max(0.0, of_folds - between_seeds / seeds))
