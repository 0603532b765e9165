"""Two evaluations of the same tasks, compared task by task: the difference, its interval, and who won where.

Pairing takes the spread between easy and hard tasks out of the interval, which for a few hundred tasks is most of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from rlvr_exp.config.scales import RATE, Scale, scale_of
from rlvr_exp.core.crossed import Values, crossed_mean, differences, p_value, smallest_found
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.statistics import mean_interval
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
