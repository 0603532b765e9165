"""The one home of estimates with 95% intervals, all by scipy.stats.

Tasks, groups or pairs are the unit that was drawn from a population: whoever has several samples of one task averages
them first. scipy is loaded by the first call, so that importing this module costs nothing.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

CONFIDENCE, LEVEL = 0.95, 0.05
"""Confidence of intervals. A test with a p of at most this level is significant."""
POWER = 0.8
"""Share of repeated studies that find the smallest reported difference."""
NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Standard errors from a mean to either end of its normal interval."""


class Estimate(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


def wilson(count: int, n: int) -> Estimate:
    """A share of independent trials with Wilson's score interval (1927), valid at 0 and n too.

    Raises:
        ValueError: unless 0 <= count <= n and n >= 1.
    """
    if not 0 <= count <= n or n < 1:
        raise ValueError(f"wilson: got count={count} of n={n}, allowed 0..n with n of at least 1")
    from scipy import stats

    interval = stats.binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(count / n, float(interval.low), float(interval.high))


def upper_bound(count: int, n: int) -> float:
    """The one-sided exact (Clopper-Pearson) 95% bound of a share of independent trials; 1 of no trials. With a count of 0 it is
    close to 3/n."""
    if not n:
        return 1.0
    from scipy import stats

    return float(stats.binomtest(count, n, alternative="less").proportion_ci(CONFIDENCE, method="exact").high)


def t_interval(values: Sequence[float]) -> Estimate:
    """A mean with Student's t-interval, which is empty for a single value and for equal values.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("t_interval: got no values; an interval needs at least one")
    mean = fmean(values)
    if min(values) == max(values):
        return Estimate(mean, mean, mean)
    from scipy import stats

    half = float(stats.t.interval(CONFIDENCE, len(values) - 1)[1] * stats.sem(values))
    return Estimate(mean, mean - half, mean + half)


def mean_p_value(values: Sequence[float], expected: float) -> float:
    """Of values whose mean is the expected one, two-sided, by Student's t; 1 or 0 of equal values, by whether they are it.

    Raises:
        ValueError: fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"mean_p_value: got {len(values)} values, allowed 2 and more")
    if min(values) == max(values):
        return float(values[0] == expected)
    from scipy import stats

    return float(stats.ttest_1samp(values, expected).pvalue)


def mean_interval(values: Sequence[float], floor: float = 0.0, ceiling: float = 1.0) -> Estimate:
    """A mean of values in [floor, ceiling], one for each task; a t-interval clipped to that range.

    If all tasks have the same value their spread is useless. Then the exact (Clopper-Pearson) bound q on the share
    of tasks that would have differed, 0 of n seen, is used, and such tasks may have had any value: low = (1-q) v +
    q floor, high = (1-q) v + q ceiling. For 0/n and n/n of a rate this is the Clopper-Pearson interval itself. With an
    infinite ceiling nothing is known of unseen tasks, and the interval of equal values is empty.

    Raises:
        ValueError: no values.
    """
    mean, low, high = t_interval(values)
    if min(values) < max(values) or math.isinf(ceiling):
        return Estimate(mean, max(floor, low), min(ceiling, high))
    from scipy import stats

    unseen = float(stats.binomtest(0, len(values)).proportion_ci(CONFIDENCE, method="exact").high)
    kept = (1.0 - unseen) * mean
    return Estimate(mean, kept + unseen * floor, kept + unseen * ceiling)


def bootstrap_interval(statistic: Callable[[Sequence[int]], float], n: int, draws: int = 300) -> tuple[float, float]:
    """(low, high) of a statistic of n units by the percentile bootstrap (Efron 1979); the draws depend on n alone.

    Args:
        statistic: of the units with these indices in 0..n-1, an array with repetitions.
    """
    if n < 2:
        value = statistic([0])
        return value, value
    from scipy import stats

    drawn = stats.bootstrap(
        (range(n),), statistic, n_resamples=draws, vectorized=False, method="percentile", rng=0
    ).confidence_interval
    return float(drawn.low), float(drawn.high)


def jackknife(value: float, without: Sequence[float]) -> Estimate:
    """A statistic of n units with Student's interval of its jackknife error (Tukey 1958).

    Args:
        without: the statistic without each of the units in turn; two or more.
    """
    from scipy import stats

    n = len(without)
    error = (n - 1) * stats.sem(without)
    half = float(stats.t.interval(CONFIDENCE, n - 1)[1] * error)
    return Estimate(value, value - half, value + half)


def difference_error(first: Sequence[float], last: Sequence[float]) -> float:
    """Standard error of the difference of two independent means (Welch 1947), each of at least two values."""
    from scipy import stats

    return math.hypot(stats.sem(first), stats.sem(last))


def slope(values: Sequence[float]) -> float:
    """Growth per step by the median of all pairwise slopes (Theil 1950, Sen 1968); 0 for fewer than two values. A few
    outlying steps do not move it."""
    if len(values) < 2:
        return 0.0
    from scipy import stats

    return float(stats.theilslopes(values).slope)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation, equal values sharing their mean rank (Spearman 1904); None if one side has equal values alone."""
    if min(first) == max(first) or min(second) == max(second):
        return None
    from scipy import stats

    return float(stats.spearmanr(first, second).statistic)


class Permuted(NamedTuple):
    """A statistic and its significance."""

    value: float
    low: float
    high: float
    """Between `low` and `high` it is in 95 of 100 permutations."""
    p: float
    """Share of permutations in which it is as far out, two-sided."""


def mantel(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Permuted | None:
    """Rank correlation of the cells off the diagonals of two square matrices over the same groups, tested by permuting
    the groups of one of them (Mantel 1967), since the cells of a group depend on each other: all permutations of up to
    seven groups. None if a side has equal cells alone.

    Raises:
        ValueError: fewer than three groups, since their cells have too few permutations.
    """
    n = len(first)
    if n < 3:
        raise ValueError(f"mantel: got {n} groups, allowed three or more")
    from scipy import stats

    cells = [(row, column) for row in range(n) for column in range(n) if row != column]
    fixed = [first[row][column] for row, column in cells]

    def of(order: Sequence[int]) -> float:
        found = spearman(fixed, [second[order[row]][order[column]] for row, column in cells])
        return math.nan if found is None else found

    if math.isnan(value := of(range(n))):
        return None
    drawn = stats.permutation_test(
        (range(n),), of, permutation_type="pairings", vectorized=False, n_resamples=5040, rng=0
    )
    low, high = stats.mstats.mquantiles(drawn.null_distribution, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Permuted(value, float(low), float(high), float(drawn.pvalue))


def power_law(numbers: Sequence[float], values: Sequence[float]) -> tuple[float, Estimate]:
    """(scale, exponent with its interval) of values that go as scale * number^exponent, by least squares of the logarithms;
    the interval is Student's t of that slope.

    Raises:
        ValueError: a number or value is not above 0, or there are fewer than three pairs or two different numbers.
    """
    if len(values) < 3 or len(set(numbers)) < 2 or min(*numbers, *values) <= 0:
        raise ValueError(f"power_law: got {len(values)} pairs, allowed three or more above 0, of different numbers")
    from scipy import stats

    line = stats.linregress([math.log(one) for one in numbers], [math.log(one) for one in values])
    half = float(stats.t.interval(CONFIDENCE, len(values) - 2)[1] * line.stderr)
    slope = float(line.slope)
    return math.exp(float(line.intercept)), Estimate(slope, slope - half, slope + half)


def rank_correlation(numbers: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """(correlation, p): Spearman's rank correlation, and the two-sided probability of one as strong under random
    assignment of the values to the numbers, by all permutations if they are few, else by 10,000 that are the same each
    time.

    Raises:
        ValueError: other counts, or all numbers or all values are equal.
    """
    if len(numbers) != len(values) or not numbers or (found := spearman(numbers, values)) is None:
        counts = f"{len(numbers)} numbers and {len(values)} values"
        raise ValueError(f"rank_correlation: got {counts}, allowed pairs that differ")
    from scipy import stats

    places = stats.rankdata(numbers) - (len(numbers) + 1) / 2

    def agreement(ranks: Any, axis: int = -1) -> Any:
        """Rises with the correlation, whose other parts no permutation changes."""
        return (ranks * places).sum(axis)

    ranks = stats.rankdata(values) - (len(values) + 1) / 2
    tested = stats.permutation_test(
        (ranks,), agreement, permutation_type="pairings", n_resamples=9999, vectorized=True, rng=0
    )
    return found, float(tested.pvalue)


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of k fresh samples passes.

    Chen et al. 2021 (arXiv:2107.03374), equation 1: 1 - C(n-c, k) / C(n, k), as a product, so that no factorial
    overflows and no difference of large numbers cancels.

    Raises:
        ValueError: unless 0 <= passed <= samples and 1 <= k <= samples.
    """
    if not 0 <= passed <= samples:
        raise ValueError(f"pass_at_k: got passed={passed} of samples={samples}, allowed 0..samples")
    if not 1 <= k <= samples:
        raise ValueError(f"pass_at_k: got k={k} with samples={samples}, allowed 1..samples; draw more samples")
    if samples - passed < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - passed + 1, samples + 1))


def t_quantile(level: float, freedom: int) -> float:
    """Student's quantile for a level above 1/2 and whole degrees of freedom, without scipy, since a plan does not load
    it: by bisection of the closed form of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4."""
    if freedom > 1000:
        return NormalDist().inv_cdf(level)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_share(middle, freedom) < 2 * level - 1 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _t_share(angle: float, freedom: int) -> float:
    """The chance that |T| is at most sqrt(freedom) * tan(angle)."""
    odd = freedom % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for number in range(2 if odd else 1, freedom, 2):
        total += term
        term *= number / (number + 1) * math.cos(angle) ** 2
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)
