"""Two evaluations of the same tasks, compared task by task: the difference, its interval, and who won where; and the finding
of a comparison of two arms in one sentence.

Pairing takes the spread between easy and hard tasks out of the interval, which for a few hundred tasks is most of it.
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
    """Second minus first: mean over `n` shared tasks with the 95% t-interval of the per-task differences."""

    value: float
    low: float
    high: float
    n: int
    won: int
    """Tasks on which the second is better: has more, or less where less is better."""
    lost: int
    tied: int

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def in_words(change: Mapping[str, float], metric: str = "") -> str:
    """`+3.1 points [-4.4, +10.6], 6 won, 5 lost` of a `Difference` as plain data."""
    scale = scale_of(metric)
    mean, low, high = (scale.number(change[key], "+") for key in ("value", "low", "high"))
    return f"{mean} {scale.unit} [{low}, {high}], {change['won']} won, {change['lost']} lost"


def difference(
    first: Mapping[str, float], second: Mapping[str, float], where: str = "evaluation", scale: Scale = RATE
) -> Difference:
    """Compare values on one scale, one for each task, from `task_values`; the metrics of the two sides may differ.

    Raises:
        InputError: the two do not hold the same tasks, or none at all.
    """
    _refuse_other_tasks(first, second, where)
    changes = [second[task] - first[task] for task in first]
    interval = mean_interval(changes, -scale.high, scale.high)
    return Difference(*interval, len(changes), *_counts(changes, scale.less_is_better))


def paired(
    first: Sequence[EvalSample], second: Sequence[EvalSample], metric: str, where: str = "evaluation"
) -> Difference:
    """Compare two evaluations by a metric.

    A task that either side could not judge often enough is left out of both; `n` counts what is left.

    Raises:
        InputError: the two did not answer the same tasks, or no task was judged on both sides.
    """
    ids = [dict.fromkeys(one.completion.task.id for one in side) for side in (first, second)]
    _refuse_other_tasks(ids[0], ids[1], where)
    left, right = task_values(first, metric), task_values(second, metric)
    shared = [task for task in left if task in right]
    sides = [{task: values[task] for task in shared} for values in (left, right)]
    return difference(sides[0], sides[1], where, scale_of(metric))


@dataclass(frozen=True)
class SeedsDifference(Difference):
    """Second minus first over several seeds: mean over seeds and tasks, with the interval over both."""

    seeds: int
    p: float
    """Of no difference."""
    smallest: float
    """The smallest true difference that would have been found in 80 of 100 such studies."""


def difference_over_seeds(first: Values, second: Values, scale: Scale = RATE) -> SeedsDifference:
    """Compare values on one scale by seed and task; a task is won by its mean over the seeds.

    Raises:
        ValueError: no values, or other seeds or tasks on the two sides.
    """
    changes = differences(first, second)
    of_tasks = [fmean(column) for column in zip(*changes, strict=True)]
    reach = scale.high
    interval, counts = crossed_mean(changes, -reach, reach), _counts(of_tasks, scale.less_is_better)
    chance, smallest = p_value(changes, reach), smallest_found(changes, reach)
    return SeedsDifference(*interval, len(of_tasks), *counts, len(changes), chance, smallest)


def _counts(changes: Sequence[float], less_is_better: bool) -> tuple[int, int, int]:
    """Tasks won, lost and tied."""
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
"""Rates below and above which all arms are too near to the end of the scale to differ by much."""
ENOUGH_SEEDS = 5
"""From so many seeds on the calibration holds (docs/statistics.md)."""


def finding(first: str, second: str, change: Mapping[str, Any], levels: Sequence[float], metric: str = "") -> str:
    """The sentence of a `SeedsDifference` as plain data, second minus first.

    Args:
        levels: the rates of both arms.
        metric: its scale says which way is better, and in which unit.
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
    """At which end of the scale all rates lie, where they have no room to differ; '' where they have."""
    if max(levels) < FLOOR:
        return f"under {FLOOR:.0%}"
    return f"over {CEILING:.0%}" if min(levels) > CEILING else ""


def _interval_of(change: Mapping[str, Any], scale: Scale) -> str:
    low, high = (scale.number(change[key]) for key in ("low", "high"))
    return f"{scale.number(change['value'], '+')} {scale.unit} [{low}, {high}]"


def of_few_seeds(seeds: int, what: str) -> str:
    """What has to be said of an interval, or another figure, of so few seeds; '' of enough."""
    if seeds == 1:
        return "; of one seed, so that nothing is known of others"
    return f"; {what} of {seeds} seeds is too small where seeds differ much" if seeds < ENOUGH_SEEDS else ""
