"""Comparison of arms: differences paired by task and seed, budgets, curves. All estimates and tests of studies are
here.

A comparison is fair if all arms used the same budget: completions, their tokens, or the seconds or core seconds of their steps.
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
from rlvr_exp.runs.study import Findings, JobRun

Values = Mapping[int, Mapping[str, float]]
"""By seed, then by task."""


@dataclass(frozen=True)
class Contrast:
    """First minus second."""

    value: SeedsDifference
    """Over common seeds and the tasks that all of them judged."""
    p: float
    """p-value of no difference, corrected for all compared arms (Holm 1979)."""

    @property
    def sure(self) -> bool:
        """Whether the difference is significant."""
        return self.p <= LEVEL


def measured(run: JobRun, metric: str) -> bool:
    """Whether a completed run has the rate after training, and its completions."""
    rates = run.summary.get(AFTER) or {}
    return run.completed and metric in rates and evaluation_path(run.directory, AFTER).exists()


def arm_values(runs: Sequence[JobRun], metric: str, when: When = AFTER) -> dict[str, dict[int, Mapping[str, float]]]:
    """The values of the completed runs after training, or before it, by arm, seed and task.

    Raises:
        InputError: no run was measured by the metric.
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
    """Each other arm minus the reference, or the reference minus the arm. Arms without common seeds and tasks are left out."""
    known = arms.get(reference, {})
    sides = {name: (known, values) if from_reference else (values, known) for name, values in arms.items()}
    return paired_contrasts({name: pair for name, pair in sides.items() if name != reference}, metric)


def paired_contrasts(pairs: Mapping[str, tuple[Values, Values]], metric: str) -> dict[str, Contrast]:
    """First minus second of each named pair over common seeds and tasks, with p-values corrected for all pairs. Pairs without
    common seeds and tasks are left out."""
    found: dict[str, SeedsDifference] = {}
    for name, (first, second) in pairs.items():
        seeds = [seed for seed in first if seed in second]
        if tasks := judged([side[seed] for side in (first, second) for seed in seeds]) if seeds else []:
            ours, theirs = ([[side[seed][task] for task in tasks] for seed in seeds] for side in (first, second))
            found[name] = difference_over_seeds(theirs, ours, scale=scale_of(metric))
    corrected = holm([between.p for between in found.values()])
    return {name: Contrast(between, p) for (name, between), p in zip(found.items(), corrected, strict=True)}


def level(values: Values) -> float:
    """The mean over seeds of an arm's mean over tasks."""
    return fmean(fmean(of_seed.values()) for of_seed in values.values())


def judged(seeds: Sequence[Mapping[str, float]]) -> list[str]:
    """The tasks that every seed judged."""
    first, *others = seeds
    return [task for task in first if all(task in other for other in others)]


def interval(values: Values, metric: str) -> Estimate:
    """The mean of an arm over its seeds and the tasks that all of them judged, with its 95% interval.

    Raises:
        InputError: no task was judged by all seeds.
    """
    tasks = judged([*values.values()])
    if not tasks:
        what, remedy = "no task was judged with every seed of an arm", "read the runs' reports"
        raise InputError(InputProblem("study.seeds", what, f"{len(values)} seeds", remedy=remedy))
    rows = [[of_seed[task] for task in tasks] for of_seed in values.values()]
    return crossed_mean(rows, ceiling=scale_of(metric).high)


def difference_row(one: Contrast, metric: str) -> dict[str, float]:
    """A difference of a metric as further columns of a row."""
    names = ("difference", "difference_low", "difference_high")
    return {**dict(zip(names, map(scale_of(metric).gain, _ends(one)), strict=True)), "p_holm": one.p}


def gain_row(one: Contrast, metric: str) -> dict[str, float]:
    """A difference of a metric as a row of a table."""
    value = one.value
    ends = dict(zip(("gain", "low", "high"), map(scale_of(metric).gain, _ends(one)), strict=True))
    return {**ends, "n": value.n, "seeds": value.seeds, "p_holm": one.p}


def shares(value: Estimate, metric: str) -> dict[str, float]:
    """A rate with its interval as columns of a table."""
    return {name: scale_of(metric).share(end) for name, end in value._asdict().items()}


def points(one: Contrast) -> Estimate:
    """A difference with its interval, in points."""
    return Estimate(100 * one.value.value, 100 * one.value.low, 100 * one.value.high)


def difference_in_words(what: str, one: Contrast) -> str:
    """A difference as a sentence that begins with `what`."""
    mean, low, high = points(one)
    unsure = "" if one.sure else "no difference was found, "
    few = of_few_seeds(one.value.seeds, "an interval" if one.sure else "such a figure")
    return f"{what}: {unsure}{mean:+.1f} points [{low:+.1f}, {high:+.1f}], {counted(one.value.n)}{few}."


def undecidable(arms: Mapping[str, Values], metric: str = "") -> str:
    """A sentence if all success rates are too near to 0 or 1 for a comparison; else empty."""
    if scale_of(metric).less_is_better:
        return ""
    where = at_an_end([level(values) for values in arms.values()])
    if not where:
        return ""
    return f"Cannot tell: all arms lie {where}, where differences vanish. Choose easier or harder tasks, or another policy."


UNSURE, NOTHING = "cannot tell", "no difference was found"


@dataclass(frozen=True)
class Wording:
    """The words for a difference."""

    name: str
    of: str
    """The two sides of the subtraction."""
    above: str
    """The word for an improvement."""
    below: str
    """The word for the opposite."""
    from_reference: bool = False
    """The reference minus the arm; else the arm minus the reference."""


AGAINST_FIRST = Wording("difference", "minus the first arm", "better", "worse")


def compared(runs: Sequence[JobRun], reference: str, metric: str, equal: str, wording: Wording) -> Findings:
    """
    Args:
        reference: the arm that the others are compared with.
        equal: the budget that should be equal, or none.
    """
    arms = arm_values(runs, metric)
    found = contrasts(arms, reference, metric, wording.from_reference)
    spent = budgets(runs, equal) if equal != "none" else {}
    table = [_row(name, level(of), found.get(name), spent.get(name), wording.name, metric) for name, of in arms.items()]
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


def _row(
    name: str, level: float, between: Contrast | None, spent: float | None, called: str, metric: str
) -> Mapping[str, Any]:
    scale = scale_of(metric)
    row: dict[str, Any] = {"arm": name, "level": scale.share(level)}
    if between is not None:
        row |= dict(zip((called, "low", "high"), map(scale.gain, _ends(between)), strict=True))
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


def with_curves(found: Findings, runs: Sequence[JobRun], name: str, metric: str, unit: str) -> Findings:
    """The findings with a table, and a plot of that name if a run has the metric."""
    means = mean_curves(runs, metric)
    rows = [
        {"arm": arm, "step": step, **value._asdict()} for arm, steps in means.items() for step, value in steps.items()
    ]
    lines = [Curve(arm, [*steps.items()], dots=False) for arm, steps in means.items()]
    drawn = {name: curves("Mean over seeds", lines, "step", unit)} if rows else {}
    return replace(found, tables={**found.tables, name: rows}, plots={**found.plots, **drawn})


def mean_curves(runs: Sequence[JobRun], metric: str) -> Mapping[str, Mapping[int, Estimate]]:
    """By arm and step of the completed runs, with the interval over seeds."""
    each: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        for row in read_metrics(run.directory) if run.completed else ():
            if (value := row.get(metric)) is not None:
                each.setdefault(run.job.arm, {}).setdefault(int(row["step"] or 0), []).append(value)
    return {arm: {step: t_interval(of) for step, of in steps.items()} for arm, steps in each.items()}


TOLERANCE = 0.05
"""Budgets that differ by a smaller share count as equal."""
SAMPLED, LENGTH = "samples/sampled", "tokens/completion_mean"
SECONDS = {"seconds": "time/step", "core_seconds": "time/step_core_seconds"}
"""Of one step."""
SEEN = "tokens/seen"
"""Supervised steps: tokens up to a row, including prompts."""
EVALUATE_MORE_OFTEN = "an algorithm.eval_every_steps that is smaller and divides the steps, or more steps"
"""The remedy if a run was not measured in time, or not at its end."""


def used(directory: Path, kind: str) -> float:
    """The budget that a run used, over all of its roles; 0 if it was not counted. Supervised steps count the tokens that they
    saw."""
    rows = read_metrics(directory)
    if kind in SECONDS:
        return max(seconds_until(rows, kind), default=0.0)
    if kind == "tokens" and not any(name.endswith(SAMPLED) for row in rows for name in row):
        return max((row.get(SEEN) or 0.0 for row in rows), default=0.0)
    return sum(sampled(row, kind) for row in rows)


def seconds_until(rows: Sequence[Row], kind: str = "seconds") -> Iterator[float]:
    """The seconds, or core seconds, of all steps up to each row. A row may stand for several steps. Rows that only contain
    measurements use the rate of the next row with seconds."""
    rates, rate = list[float](), 0.0
    for row in reversed(rows):
        rate = row.get(SECONDS[kind]) or rate
        rates.append(rate)
    total, before = 0.0, 0
    for row, rate in zip(rows, reversed(rates), strict=True):
        step = int(row["step"] or 0)
        total, before = total + rate * (step - before), step
        yield total


def metric_at(directory: Path, metric: str, kind: str, amount: float) -> float | None:
    """A metric of a run after an amount of seconds, or of tokens of supervised steps.

    Interpolated between two measurements, since runs that are measured seldom would have older values. None if the run has no
    measurement before or after that amount.
    """
    rows = read_metrics(directory)
    spent = [*(seconds_until(rows) if kind == "seconds" else _tokens_until(rows))]
    found = [(at, row[metric]) for at, row in zip(spent, rows, strict=True) if metric in row]
    if not found or not found[0][0] <= amount <= found[-1][0]:
        return None
    return float(np.interp(amount, [at for at, _ in found], [value for _, value in found]))


def _tokens_until(rows: Sequence[Row]) -> Iterator[float]:
    """The tokens of supervised steps up to each row. Some rows only contain measurements."""
    known = {0: 0.0} | {int(row["step"] or 0): row[SEEN] or 0.0 for row in rows if SEEN in row}
    yield from (float(np.interp(int(row["step"] or 0), [*known], [*known.values()])) for row in rows)


def sampled(row: Row, kind: str = "rollouts") -> float:
    """Completions of a row, or their tokens, summed over roles."""
    roles = [name.removesuffix(SAMPLED) for name in row if name.endswith(SAMPLED)]
    return sum(
        (row[role + SAMPLED] or 0.0) * ((row.get(role + LENGTH) or 0.0) if kind == "tokens" else 1.0) for role in roles
    )


def budgets(runs: Sequence[JobRun], kind: str) -> dict[str, float]:
    """The mean budget of the completed runs of each arm."""
    each: dict[str, list[float]] = {}
    for run in runs:
        if run.completed:
            each.setdefault(run.job.arm, []).append(used(run.directory, kind))
    return {arm: fmean(values) for arm, values in each.items()}


def unequal(by_arm: Mapping[str, float], kind: str) -> str:
    """A sentence if arms had different budgets; else empty."""
    least, most = (choose(by_arm, key=by_arm.__getitem__, default="") for choose in (min, max))
    if not by_arm or by_arm[most] - by_arm[least] <= TOLERANCE * by_arm[most]:
        return ""
    amounts = f"{least} had {by_arm[least]:,.0f} {kind}, {most} {by_arm[most]:,.0f}"
    return f"Unequal budgets: {amounts}; a difference may come from that. study.equal chooses what is compared."
