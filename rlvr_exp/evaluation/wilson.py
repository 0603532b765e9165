"""The 95% interval of a share of independent trials, without a statistics library: for programs that start at once."""

import math
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)


def wilson(count: int, n: int) -> dict[str, float | int]:
    """RATE in the form of summary.json: Wilson's score interval (1927), which holds at 0 and n too.

    Raises:
        ValueError: unless 0 <= count <= n and n >= 1.
    """
    if not 0 <= count <= n or n < 1:
        raise ValueError(f"wilson: got count={count} of n={n}, allowed 0..n with n of at least 1")
    share, weight = count / n, _Z * _Z / n
    centre = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return {"value": share, "low": low, "high": high, "n": n, "samples": 1}
