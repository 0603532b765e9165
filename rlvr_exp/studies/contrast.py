"""What one arm has over another, paired by task and seed: the one place where studies estimate and decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlvr_exp.config.scales import counted, scale_of
from rlvr_exp.core.crossed import crossed_mean, holm
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.statistics import LEVEL, Estimate
from rlvr_exp.evaluation.arms import AFTER
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.evaluation.paired import SeedsDifference, at_an_end, difference_over_seeds, of_few_seeds
from rlvr_exp.records.rollout_files import When, evaluation_path, read_evaluation
from rlvr_exp.studies.study import Run

Values = Mapping[int, Mapping[str, float]]
"""By seed, then by task."""


@dataclass(frozen=True)
class Contrast:
    """First minus second."""

    value: SeedsDifference
    """Over the seeds that both have, and the tasks that each could judge."""
    p: float
    """Of no difference, corrected for all arms that are compared (Holm 1979)."""

    @property
    def sure(self) -> bool:
        """Whether chance alone is an unlikely cause."""
        return self.p <= LEVEL


def measured(run: Run, metric: str) -> bool:
    """Whether a completed run has that rate after training, with the completions behind it."""
    rates = run.summary.get(AFTER) or {}
    return run.completed and metric in rates and evaluation_path(run.directory, AFTER).exists()


def arm_values(runs: Sequence[Run], metric: str, when: When = AFTER) -> dict[str, dict[int, Mapping[str, float]]]:
    """What the completed runs of each arm measured after training, or before it, by arm, seed and task.

    Raises:
        InputError: none was measured by that metric.
    """
    found: dict[str, dict[int, Mapping[str, float]]] = {}
    for run in runs:
        if measured(run, metric):
            values = task_values(read_evaluation(run.directory, when), metric)
            found.setdefault(run.job.arm, {})[run.job.seed] = values
    if not found:
        known = sorted({name for run in runs for name in run.summary.get(AFTER) or {}})
        what = "no run measured it after training"
        raise InputError(InputProblem("study.metric", what, metric, ", ".join(known), "", "study.metric=NAME"))
    return found


def contrasts(
    arms: Mapping[str, Values], reference: str, metric: str, from_reference: bool = False
) -> dict[str, Contrast]:
    """Each other arm minus the reference, or the reference minus it, where both were measured on tasks with a seed of both."""
    known = arms.get(reference, {})
    sides = {name: (known, values) if from_reference else (values, known) for name, values in arms.items()}
    return paired_contrasts({name: pair for name, pair in sides.items() if name != reference}, metric)


def paired_contrasts(pairs: Mapping[str, tuple[Values, Values]], metric: str) -> dict[str, Contrast]:
    """First minus second of each named pair that was measured on tasks with a seed of both, corrected for all of them."""
    found = {name: between for name, (first, second) in pairs.items() if (between := _between(first, second, metric))}
    corrected = holm([between.p for between in found.values()])
    return {name: Contrast(between, p) for (name, between), p in zip(found.items(), corrected, strict=True)}


def _between(first: Values, second: Values, metric: str) -> SeedsDifference | None:
    """First minus second over the seeds that both have and the tasks that each could judge; None where there are none."""
    seeds = [seed for seed in first if seed in second]
    sides = [[side[seed] for seed in seeds] for side in (first, second)]
    every = [values for side in sides for values in side]
    tasks = judged(every) if every else []
    if not tasks:
        return None
    ours, theirs = ([[values[task] for task in tasks] for values in side] for side in sides)
    return difference_over_seeds(theirs, ours, scale=scale_of(metric))


def level(values: Values) -> float:
    """The mean over seeds of an arm's mean over tasks."""
    return fmean(fmean(of_seed.values()) for of_seed in values.values())


def judged(seeds: Sequence[Mapping[str, float]]) -> list[str]:
    """The tasks that every seed could judge."""
    first, *others = seeds
    return [task for task in first if all(task in other for other in others)]


def interval(values: Values, metric: str) -> Estimate:
    """The mean of an arm over its seeds and the tasks that each of them could judge, with its 95% interval.

    Raises:
        InputError: there is no such task.
    """
    rows = judged_by_all([*values.values()])
    return crossed_mean(rows, ceiling=scale_of(metric).high)


def judged_by_all(seeds: Sequence[Mapping[str, float]]) -> list[list[float]]:
    """By seed, the values of the tasks that every seed could judge.

    Raises:
        InputError: there is no such task.
    """
    tasks = judged(seeds)
    if not tasks:
        what, remedy = "no task was judged with every seed of an arm", "read why in the runs' reports"
        raise InputError(InputProblem("study.seeds", what, f"{len(seeds)} seeds", remedy=remedy))
    return [[of_seed[task] for task in tasks] for of_seed in seeds]


def gain_row(one: Contrast) -> dict[str, float]:
    """A difference as a row of a table."""
    value = one.value
    ends = {"gain": value.value, "low": value.low, "high": value.high}
    return {**ends, "n": value.n, "seeds": value.seeds, "p_holm": one.p}


def points(one: Contrast) -> Estimate:
    """A difference with its interval, in points."""
    return Estimate(100 * one.value.value, 100 * one.value.low, 100 * one.value.high)


def difference_in_words(what: str, one: Contrast) -> str:
    """A difference as a sentence. `what`: between what it is."""
    mean, low, high = points(one)
    unsure = "" if one.sure else "no difference was found, "
    few = of_few_seeds(one.value.seeds, "an interval" if one.sure else "such a figure")
    return f"{what}: {unsure}{mean:+.1f} points [{low:+.1f}, {high:+.1f}], {counted(one.value.n)}{few}."


def undecidable(arms: Mapping[str, Values], metric: str = "") -> str:
    """Why no arm can be told from another by how often it succeeds, as a sentence; '' where it can, or less is better."""
    if scale_of(metric).less_is_better:
        return ""
    where = at_an_end([level(values) for values in arms.values()])
    if not where:
        return ""
    return f"Cannot tell: all arms lie {where}, where differences vanish. Choose easier or harder tasks, or another policy."
