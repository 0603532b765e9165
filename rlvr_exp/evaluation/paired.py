"""Paired comparison of two evaluations on the same tasks: the difference, its interval, and the tasks won and lost. The
module also puts the comparison of two arms into one sentence.

Pairing removes the spread between easy and hard tasks from the interval. For a few hundred tasks this is most of the
interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rlvr_exp.core.crossed import Values, crossed_mean, differences, p_value, smallest_found
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import RATE, Scale, scale_of
from rlvr_exp.core.statistics import LEVEL, mean_interval
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.records.rollout_files import EvalSample


@dataclass(frozen=True)
class Difference:
    """Second minus first: the mean over `n` shared tasks, with the 95% t-interval of the differences per task."""

    value: float
    low: float
    high: float
    n: int
    won: int
    """Number of tasks on which the second is better. The metric determines whether more or less is better."""
    lost: int
    tied: int

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def in_words(change: Mapping[str, float], metric: str = "") -> str:
    """Format a `Difference` in plain data: `+3.1 points [-4.4, +10.6], 6 won, 5 lost`."""
    scale = scale_of(metric)
    mean, low, high = (scale.number(change[key], "+") for key in ("value", "low", "high"))
    return f"{mean} {scale.unit} [{low}, {high}], {change['won']} won, {change['lost']} lost"


def difference(
    first: Mapping[str, float], second: Mapping[str, float], where: str = "evaluation", scale: Scale = RATE
) -> Difference:
    """Compare values on one scale, one per task, from `task_values`. The metrics of the two sides may differ.

    Raises:
        InputError: the two sides have different tasks, or no tasks.
    """
    _refuse_other_tasks(first, second, where)
    changes = [second[task] - first[task] for task in first]
    interval = mean_interval(changes, -scale.high, scale.high)
    return Difference(*interval, len(changes), *_counts(changes, scale.less_is_better))


def paired(
    first: Sequence[EvalSample], second: Sequence[EvalSample], metric: str, where: str = "evaluation"
) -> Difference:
    """Compare two evaluations by a metric.

    A task is left out if either side has too few verdicts on it. `n` is the number of remaining tasks.

    Raises:
        InputError: the two sides answered different tasks, or no task was judged on both sides.
    """
    ids = [dict.fromkeys(one.completion.task.id for one in side) for side in (first, second)]
    _refuse_other_tasks(ids[0], ids[1], where)
    left, right = task_values(first, metric), task_values(second, metric)
    shared = [task for task in left if task in right]
    sides = [{task: values[task] for task in shared} for values in (left, right)]
    return difference(sides[0], sides[1], where, scale_of(metric))


@dataclass(frozen=True)
class SeedsDifference(Difference):
    """Second minus first over several seeds: the mean over seeds and tasks, with the interval over both."""

    seeds: int
    p: float
    """The p-value of no difference."""
    smallest: float
    """The smallest true difference that 80 of 100 such studies would detect."""


def difference_over_seeds(first: Values, second: Values, scale: Scale = RATE) -> SeedsDifference:
    """Compare values on one scale by seed and task. The mean over the seeds decides whether a task is won.

    Raises:
        ValueError: there are no values, or the two sides have different seeds or tasks.
    """
    changes = differences(first, second)
    of_tasks = [fmean(column) for column in zip(*changes, strict=True)]
    reach = scale.high
    interval, counts = crossed_mean(changes, -reach, reach), _counts(of_tasks, scale.less_is_better)
    chance, smallest = p_value(changes, reach), smallest_found(changes, reach)
    return SeedsDifference(*interval, len(of_tasks), *counts, len(changes), chance, smallest)


def _counts(changes: Sequence[float], less_is_better: bool) -> tuple[int, int, int]:
    """Return the numbers of tasks won, lost and tied."""
    more, less = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return *((less, more) if less_is_better else (more, less)), len(changes) - more - less


def _refuse_other_tasks(first: Mapping[str, object], second: Mapping[str, object], where: str) -> None:
    shared = len(first.keys() & second.keys())
    if first.keys() == second.keys() and shared:
        return
    counts = (
        f"{len(first) - shared} tasks only in the first, {len(second) - shared} only in the second, {shared} in both"
    )
    raise InputError(
        InputProblem(
            where,
            "a paired comparison needs the same tasks on both sides",
            got=counts,
            remedy="evaluate both with the same data, split and limit, and far enough to be judged",
        )
    )


FLOOR, CEILING = 0.05, 0.95
"""If all rates are below the first or above the second value, arms are too close to the end of the scale to differ
much."""
ENOUGH_SEEDS = 5
"""Intervals are calibrated from this many seeds on (docs/statistics.md)."""


def finding(first: str, second: str, change: Mapping[str, Any], levels: Sequence[float], metric: str = "") -> str:
    """Return a sentence about a `SeedsDifference` in plain data, second minus first.

    Args:
        levels: the rates of both arms.
        metric: determines the unit, and whether more or less is better.
    """
    scale = scale_of(metric)
    if (end := at_an_end(levels)) and not scale.less_is_better:
        return f"cannot tell: all arms lie {end}"
    p = change.get("p_holm", change["p"])
    if p <= LEVEL:
        rises = (change["value"] > 0) != scale.less_is_better
        better = f"{second} is {'better' if rises else 'worse'} than {first}: {_interval_of(change, scale)}"
        return better + of_few_seeds(change["seeds"], "an interval")
    corrected = f" after Holm's correction for {change['arms']} arms" if change["p"] <= LEVEL else ""
    least = f"{scale.number(change['smallest'])} {scale.unit}"
    smallest = f"one of {least} would have been found in 80 of 100 such studies"
    none = f"no difference between {second} and {first} was found{corrected}: {_interval_of(change, scale)}; {smallest}"
    return none + of_few_seeds(change["seeds"], "such a figure")


def at_an_end(levels: Sequence[float]) -> str:
    """Return the end of the scale at which all rates are, with no room to differ. Empty if they have room."""
    if max(levels) < FLOOR:
        return f"under {FLOOR:.0%}"
    return f"over {CEILING:.0%}" if min(levels) > CEILING else ""


def _interval_of(change: Mapping[str, Any], scale: Scale) -> str:
    low, high = (scale.number(change[key]) for key in ("low", "high"))
    return f"{scale.number(change['value'], '+')} {scale.unit} [{low}, {high}]"


def of_few_seeds(seeds: int, what: str) -> str:
    """Return the caveat about an interval, or another figure, of so few seeds. Empty if there are enough."""
    if seeds == 1:
        return "; of one seed, so that nothing is known of others"
    return f"; {what} of {seeds} seeds is too small where seeds differ much" if seeds < ENOUGH_SEEDS else ""
