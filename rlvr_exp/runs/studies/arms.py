"""Ablations, algorithms and optimizers: training arms against a reference arm, at equal budgets.

Runs are paired by seed and their measurements by task. The impact of an ablation is the full training minus the training
without the component: a component without effect has an impact of 0. A curve of `study=optimizers` is smoothed by the mean of
its last `window` rows; each run has to reach the final value of the first arm's run with the same seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.study import FULL
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import SUCCESS
from rlvr_exp.core.statistics import t_interval
from rlvr_exp.evaluation.arms import AFTER, BEFORE
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.records.rollout_files import When, evaluation_path, read_evaluation
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.runs.comparison import Wording, compared, contrasts, difference_row, interval, shares, with_curves
from rlvr_exp.runs.study import ArmStudy, Findings, Job, JobRun

IMPACT = Wording("impact", "full minus without the component", "helps", "harms", from_reference=True)


class Ablation(options.Ablation, ArmStudy):
    def jobs(self) -> list[Job]:
        return [*self.arm(FULL, ()), *self.arm_jobs()]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        return compared(runs, FULL, self.metric, self.equal, IMPACT)


FIRST_ALGORITHM = Wording("difference", "minus the first algorithm", "better", "worse")
ENTROPY, MIXED = "entropy", "groups/mixed"
LAST_ROWS = 10
"""The entropy at the end is the mean of so many rows."""


class Algorithms(options.Algorithms, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        reference = runs[0].job.arm
        found = compared(runs, reference, self.metric, self.equal, FIRST_ALGORITHM)
        completed = [run for run in runs if run.completed]
        after = _Measured(completed, AFTER)
        before = _Measured([run for run in completed if run.job.arm == reference], BEFORE)
        ends = [_end(arm, completed, after) for arm in after.tokens]
        found = replace(found, tables={**found.tables, "rates": [*_rates(before, after, reference)], "ends": ends})
        return with_curves(found, runs, ENTROPY, ENTROPY, "entropy of a token, nats")


class _Measured:
    """All success rates of runs, those that summaries leave out, too. Reads each file once."""

    def __init__(self, runs: Sequence[JobRun], when: When):
        self.rates: dict[str, dict[str, dict[int, Mapping[str, float]]]] = {}
        """By name, arm, seed and task."""
        self.tokens: dict[str, list[float]] = {}
        """By arm: the mean tokens of a sampled answer of each run."""
        for run in runs:
            if evaluation_path(run.directory, when).exists():
                results = read_evaluation(run.directory, when)
                sampled = [one.completion for one in results if one.mode == "sampled"]
                for name in dict.fromkeys((*SUCCESS, f"pass_at_{1 + max((one.sample for one in sampled), default=0)}")):
                    if values := task_values(results, name):
                        self.rates.setdefault(name, {}).setdefault(run.job.arm, {})[run.job.seed] = values
                self.tokens.setdefault(run.job.arm, []).extend(
                    [fmean(one.tokens for one in sampled)] if sampled else []
                )


def _rates(before: _Measured, after: _Measured, reference: str) -> Iterator[Mapping[str, Any]]:
    """Each rate of each arm, and of the reference before training, with 95% intervals over seeds and tasks. Differences are
    corrected for the arms (Holm)."""
    for metric, arms in after.rates.items():
        against = contrasts(arms, reference, metric)
        for arm, values in {BEFORE: before.rates.get(metric, {}).get(reference, {}), **arms}.items():
            if values:
                row = {"rate": metric, "arm": arm, "seeds": len(values)} | shares(interval(values, metric), metric)
                yield row | (difference_row(against[arm], metric) if arm in against else {})


def _end(arm: str, runs: Sequence[JobRun], after: _Measured) -> Mapping[str, Any]:
    """Tokens of a sampled answer after training, the entropy in the last rows, the share of groups in which some answers passed
    and some failed. Imitation has no groups."""
    rows = [read_metrics(run.directory) for run in runs if run.job.arm == arm]
    entropies = [row[ENTROPY] for each in rows for row in each[-LAST_ROWS:] if row.get(ENTROPY) is not None]
    mixed = [row[MIXED] for each in rows for row in each if row.get(MIXED) is not None]
    found: dict[str, Any] = {"arm": arm}
    for name, values in {"tokens": after.tokens[arm], ENTROPY: entropies, "mixed_groups": mixed}.items():
        if values:
            found[name] = fmean(values)
    return found


FIRST_OPTIMIZER = Wording("difference", "minus the first optimizer", "better", "worse")
CLIPPED = "grad_norm/clipped"


@dataclass(frozen=True)
class _Course:
    """The course of a run."""

    arm: str
    seed: Any
    curve: Sequence[tuple[int, float]]
    """Steps with the smoothed metric."""
    clipped: float | None
    """Share of steps with a clipped gradient; None if it was not logged."""


class Optimizers(options.Optimizers, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        reference = runs[0].job.arm
        found = compared(runs, reference, self.metric, self.equal, FIRST_OPTIMIZER)
        courses = self._courses(runs)
        targets = {one.seed: one.curve[-1][1] for one in courses if one.arm == reference}
        rows = [self._row(arm, courses, targets) for arm in dict.fromkeys(one.arm for one in courses)]
        answer = [*found.answer, *(_sentence(row, reference) for row in rows if row["arm"] != reference)]
        found = replace(found, answer=answer, tables={**found.tables, "convergence": rows})
        return with_curves(found, runs, "curve", self.curve, self.curve)

    def _courses(self, runs: Sequence[JobRun]) -> list[_Course]:
        """Raises InputError if no run has the curve."""
        metrics = {run.job: read_metrics(run.directory) for run in runs if run.completed}
        found = [
            _Course(job.arm, job.seed, curve, _clipped(rows))
            for job, rows in metrics.items()
            if (curve := self._smoothed(rows))
        ]
        if not found:
            known = sorted({name for rows in metrics.values() for row in rows for name in row if "/mean" in name})
            problem = InputProblem("study.curve", "no run has it", self.curve, ", ".join(known), "", "study.curve=NAME")
            raise InputError(problem)
        return found

    def _smoothed(self, rows: Sequence[Row]) -> list[tuple[int, float]]:
        """From the first full window on: means of fewer rows are noisier, and would reach a target by chance."""
        values = [(int(row["step"] or 0), value) for row in rows if (value := row.get(self.curve)) is not None]
        window = min(self.window, len(values))
        return [
            (step, fmean(value for _, value in values[place + 1 - window : place + 1]))
            for place, (step, _) in enumerate(values)
            if place + 1 >= window
        ]

    def _row(self, arm: str, courses: Sequence[_Course], targets: Mapping[Any, float]) -> Mapping[str, Any]:
        own = [one for one in courses if one.arm == arm]
        paired = [self._reached(one.curve, targets[one.seed]) for one in own if one.seed in targets]
        steps = [step for step in paired if step is not None]
        row: dict[str, Any] = {"arm": arm, "seeds": len(paired), "reached": len(steps)}
        if steps and len(steps) == len(paired):  # A mean of those that did would be too low.
            row |= dict(zip(("step", "low", "high"), t_interval(steps), strict=True))
        row |= {"final": fmean(one.curve[-1][1] for one in own)}
        shares = [one.clipped for one in own if one.clipped is not None]
        return row | {"clipped": fmean(shares)} if shares else row

    def _reached(self, curve: Sequence[tuple[int, float]], target: float) -> int | None:
        """The first step at which the smoothed curve is as good as the target."""
        sign = 1 if self.direction == "maximize" else -1
        return next((step for step, value in curve if sign * value >= sign * target), None)


def _clipped(rows: Sequence[Row]) -> float | None:
    """The share of a row belongs to the steps since the row before it."""
    before, steps, clipped = 0, 0, 0.0
    for row in rows:
        step = int(row["step"] or 0)
        if (share := row.get(CLIPPED)) is not None:
            steps, clipped, before = steps + step - before, clipped + share * (step - before), step
    return clipped / steps if steps else None


def _sentence(row: Mapping[str, Any], reference: str) -> str:
    if "step" in row:
        interval = f" [{max(0.0, row['low']):.0f}, {row['high']:.0f}]" if row["seeds"] > 1 else ""
        reached = f"gets to the final value of {reference} at step {row['step']:.0f}{interval}"
    elif row["seeds"]:
        reached = f"gets to the final value of {reference} with {row['reached']} of {row['seeds']} seeds"
    else:
        reached = f"no seed of it is one of {reference}"
    clipped = f"; {row['clipped']:.0%} of its steps are clipped" if "clipped" in row else ""
    return f"{row['arm']}: {reached}{clipped}."
