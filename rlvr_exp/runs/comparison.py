"""Comparison of arms: differences paired by task and seed, budgets, curves. Studies estimate and decide here alone.

Arms are compared fairly if they used up equally much: completions, their tokens, or the seconds of their steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rlvr_exp.core.crossed import crossed_mean, holm
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import counted, scale_of
from rlvr_exp.core.statistics import LEVEL, Estimate, t_interval
from rlvr_exp.evaluation.arms import AFTER
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.evaluation.paired import SeedsDifference, at_an_end, difference_over_seeds, of_few_seeds
from rlvr_exp.records.rollout_files import When, evaluation_path, read_evaluation
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.plots import Curve, curves, intervals
from rlvr_exp.runs.study import Findings, Run

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


UNSURE, NOTHING = "cannot tell", "no difference was found"


@dataclass(frozen=True)
class Wording:
    """What a difference is called."""

    name: str
    of: str
    """What is subtracted from what."""
    above: str
    """Said of a difference above 0; where less is better, below it."""
    below: str
    from_reference: bool = False
    """The reference minus the arm; else the arm minus the reference."""


AGAINST_FIRST = Wording("difference", "minus the first arm", "better", "worse")


def compared(runs: Sequence[Run], reference: str, metric: str, equal: str, wording: Wording) -> Findings:
    """
    Args:
        reference: the arm that the others are compared with.
        equal: the budget that should be equal, or none.
    """
    arms = arm_values(runs, metric)
    found = contrasts(arms, reference, metric, wording.from_reference)
    spent = budgets(runs, equal) if equal != "none" else {}
    table = [_row(name, level(of), found.get(name), spent.get(name), wording.name) for name, of in arms.items()]
    answer = [unequal(spent, equal), undecidable(arms, metric) or _headline(found, reference, metric, wording)]
    answer += [_sentence(name, between, metric, wording) for name, between in found.items()]
    scale = scale_of(metric)
    shown = 100 if scale.bounded else 1
    rows = {name: Estimate(*(shown * end for end in _ends(between))) for name, between in found.items()}
    unit = f"{scale.unit}, with 95% intervals over seeds and tasks"
    drawn = intervals(f"{metric}: {wording.of}", rows, unit) if rows else None
    return Findings([*filter(None, answer)], {wording.name: table}, {wording.name: drawn} if drawn else {})


def _ends(between: Contrast) -> tuple[float, float, float]:
    return between.value.value, between.value.low, between.value.high


def _row(name: str, level: float, between: Contrast | None, spent: float | None, called: str) -> Mapping[str, Any]:
    row: dict[str, Any] = {"arm": name, "level": level}
    if between is not None:
        row |= dict(zip((called, "low", "high"), _ends(between), strict=True))
        row |= {"tasks": between.value.n, "seeds": between.value.seeds, "p_holm": between.p}
    return row if spent is None else row | {"budget": spent}


def _headline(found: Mapping[str, Contrast], reference: str, metric: str, wording: Wording) -> str:
    if not found:
        return f"{UNSURE.capitalize()}: no arm was measured by {metric} on the tasks and seeds of {reference}."
    scale = scale_of(metric)
    clear = sorted((name for name in found if found[name].sure), key=lambda name: -abs(found[name].value.value))
    if not clear:
        ends = [scale.number(choose(one.value.smallest for one in found.values())) for choose in (min, max)]
        smallest = f"{ends[0]} to {ends[1]} {scale.unit}, by arm," if ends[0] != ends[1] else f"{ends[0]} {scale.unit}"
        seen = f"one of {smallest} would have been found in 80 of 100 such studies"
        return f"No difference was found: chance may be the cause of each; {seen}."
    parts = ", ".join(f"{name} ({scale.number(found[name].value.value, '+')} {scale.unit})" for name in clear)
    return f"{wording.name.capitalize()} on {metric} beyond chance, {len(clear)} of {len(found)}: {parts}."


def _sentence(name: str, between: Contrast, metric: str, wording: Wording) -> str:
    scale = scale_of(metric)
    mean, low, high = (scale.number(end, "+") for end in _ends(between))
    good = (between.value.value > 0) != scale.less_is_better
    what = (wording.above if good else wording.below) if between.sure else NOTHING
    seeds, smallest = between.value.seeds, f"{scale.number(between.value.smallest)} {scale.unit}"
    counts = f"{counted(between.value.n)}, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    found = "" if between.sure else f"; one of {smallest} would have been found in 80 of 100 such studies"
    few = of_few_seeds(seeds, "an interval" if between.sure else "such a figure")
    return f"{name}: {what}, {wording.name} {mean} {scale.unit} [{low}, {high}], {counts}{found}{few}."


def with_curves(found: Findings, runs: Sequence[Run], name: str, metric: str, unit: str) -> Findings:
    """The findings with a table and, where a run has the metric, a plot of that name."""
    means = mean_curves(runs, metric)
    rows = [
        {"arm": arm, "step": step, **value._asdict()} for arm, steps in means.items() for step, value in steps.items()
    ]
    lines = [Curve(arm, [*steps.items()], dots=False) for arm, steps in means.items()]
    drawn = {name: curves("Mean over seeds", lines, "step", unit)} if rows else {}
    return replace(found, tables={**found.tables, name: rows}, plots={**found.plots, **drawn})


def mean_curves(runs: Sequence[Run], metric: str) -> Mapping[str, Mapping[int, Estimate]]:
    """By arm and step of the completed runs, with the interval over seeds."""
    each: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        for row in read_metrics(run.directory) if run.completed else ():
            if (value := row.get(metric)) is not None:
                each.setdefault(run.job.arm, {}).setdefault(int(row["step"] or 0), []).append(value)
    return {arm: {step: t_interval(of) for step, of in steps.items()} for arm, steps in each.items()}


TOLERANCE = 0.05
"""Budgets that differ by a smaller share count as equal."""
SAMPLED, LENGTH, SECONDS = "samples/sampled", "tokens/completion_mean", "time/step"
SEEN = "tokens/seen"
"""Of imitation: tokens that were learned from up to a row, their prompts included."""
EVALUATE_MORE_OFTEN = "an algorithm.eval_every_steps that is smaller and divides the steps, or more steps"
"""What helps where a run was not measured in time, or not at its end."""


def used(directory: Path, kind: str) -> float:
    """By the run's rows of metrics, of all of its roles; 0 where none were counted. Tokens of imitation, which samples
    nothing, are those that it saw."""
    rows = read_metrics(directory)
    if kind == "seconds":
        return max(seconds_until(rows), default=0.0)
    if kind == "tokens" and not any(name.endswith(SAMPLED) for row in rows for name in row):
        return max((row.get(SEEN) or 0.0 for row in rows), default=0.0)
    return sum(sampled(row, kind) for row in rows)


def seconds_until(rows: Sequence[Row]) -> Iterator[float]:
    """The seconds of all steps up to each row, of which one may stand for several steps. A row of measurements alone is in
    the midst of the steps of the next that has seconds."""
    rates, rate = list[float](), 0.0
    for row in reversed(rows):
        rate = row.get(SECONDS) or rate
        rates.append(rate)
    total, before = 0.0, 0
    for row, rate in zip(rows, reversed(rates), strict=True):
        step = int(row["step"] or 0)
        total, before = total + rate * (step - before), step
        yield total


def metric_at(directory: Path, metric: str, kind: str, amount: float) -> float | None:
    """A metric of a run's rows when it had used up so many seconds, or seen so many tokens of imitation: in proportion between
    the measurements around it, else runs that are measured seldom would have older ones. None where the run was not measured
    before it, or not from then on.
    """
    rows = read_metrics(directory)
    spent = [*(seconds_until(rows) if kind == "seconds" else _tokens_until(rows))]
    found = [(at, row[metric]) for at, row in zip(spent, rows, strict=True) if metric in row]
    if not found or not found[0][0] <= amount <= found[-1][0]:
        return None
    return float(np.interp(amount, [at for at, _ in found], [value for _, value in found]))


def _tokens_until(rows: Sequence[Row]) -> Iterator[float]:
    """The tokens of imitation up to each row, some of which have measurements alone."""
    known = {0: 0.0} | {int(row["step"] or 0): row[SEEN] or 0.0 for row in rows if SEEN in row}
    yield from (float(np.interp(int(row["step"] or 0), [*known], [*known.values()])) for row in rows)


def sampled(row: Row, kind: str = "rollouts") -> float:
    """Completions of the row, or their tokens; names of several roles end alike."""
    roles = [name.removesuffix(SAMPLED) for name in row if name.endswith(SAMPLED)]
    return sum(
        (row[role + SAMPLED] or 0.0) * ((row.get(role + LENGTH) or 0.0) if kind == "tokens" else 1.0) for role in roles
    )


def budgets(runs: Sequence[Run], kind: str) -> dict[str, float]:
    """By arm, the mean over its completed runs."""
    each: dict[str, list[float]] = {}
    for run in runs:
        if run.completed:
            each.setdefault(run.job.arm, []).append(used(run.directory, kind))
    return {arm: fmean(values) for arm, values in each.items()}


def unequal(by_arm: Mapping[str, float], kind: str) -> str:
    """A sentence where arms had different budgets; ''."""
    least, most = (choose(by_arm, key=by_arm.__getitem__, default="") for choose in (min, max))
    if not by_arm or by_arm[most] - by_arm[least] <= TOLERANCE * by_arm[most]:
        return ""
    amounts = f"{least} had {by_arm[least]:,.0f} {kind}, {most} {by_arm[most]:,.0f}"
    return f"Unequal budgets: {amounts}; a difference may come from that. study.equal chooses what is compared."
