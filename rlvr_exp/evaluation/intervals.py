"""The 95% confidence interval of a mean over tasks, and the unbiased pass@k. Pure functions of numbers.

Tasks are the unit that was drawn from a population; samples of one task are not independent of each other, so no
interval here ever counts them as if they were.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy import stats

CONFIDENCE = 0.95


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


def mean_interval(values: Sequence[float], floor: float, ceiling: float) -> tuple[float, float, float]:
    """(mean, low, high) of one value a task, each in [floor, ceiling]; a t-interval clipped to that range.

    Where all tasks have the same value their spread is useless. Then the exact (Clopper-Pearson) bound q on the share
    of tasks that would have differed, 0 of n seen, is used, and such tasks may have had any value: low = (1-q) v +
    q floor, high = (1-q) v + q ceiling. For 0/n and n/n of a rate this is the Clopper-Pearson interval itself.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("mean_interval: got no values; an interval needs at least one task")
    mean = fmean(values)
    if min(values) == max(values):
        unseen = float(stats.binomtest(0, len(values)).proportion_ci(CONFIDENCE, method="exact").high)
        kept = (1.0 - unseen) * mean
        return mean, kept + unseen * floor, kept + unseen * ceiling
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean, max(floor, mean - half), min(ceiling, mean + half)
