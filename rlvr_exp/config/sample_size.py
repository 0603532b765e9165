"""How small a difference a number of held-out tasks can show, before anything is measured.

Two rates are measured on the same `tasks`, each task with `samples` answers, and compared by a paired t-test at the 5% level.
The smallest true difference that is found in 80 of 100 repetitions is

    (t(0.975) + t(0.8)) * sqrt(1 / (2 * samples * tasks)),   both quantiles with tasks - 1 degrees of freedom.

The error is assumed to be that of the draws alone, in the noisiest case: every task is solved half of the time, and changes by
the same amount. Tasks that are always or never solved make it smaller, changes that differ between tasks make it larger.
"""

import math

from rlvr_exp.config.scales import counted
from rlvr_exp.core.statistics import CONFIDENCE, POWER, t_quantile

FEW = 30
"""Below so many tasks a run warns: an interval over them covers most of the scale."""


def smallest_planned(tasks: int, samples: int) -> float | None:
    """The smallest difference that is found; None of a single task, which has no spread."""
    if tasks < 2:
        return None
    needed = t_quantile((1 + CONFIDENCE) / 2, tasks - 1) + t_quantile(POWER, tasks - 1)
    return needed * math.sqrt(1 / (2 * samples * tasks))


def detectable(tasks: int, samples: int, greedy: bool) -> str:
    """The smallest differences of sampled and of greedy answers, in words."""
    if tasks < 2:
        return "no difference: a single task has no spread to compare a difference with"
    kinds = {counted(samples, "sample"): samples, **({"the greedy answer": 1} if greedy else {})}
    found = {kind: smallest_planned(tasks, count) or 1.0 for kind, count in kinds.items()}
    parts = [f"{100 * value:.1f} points by {kind}" if value < 1 else f"none by {kind}" for kind, value in found.items()]
    return f"{', '.join(parts)} of each of {counted(tasks)} (smallest paired difference, 80% power at the 5% level)"
