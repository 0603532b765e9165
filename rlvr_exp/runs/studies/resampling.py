"""Studies that train on several parts of the data: cross-validation, and the bias and variance of failures.

Cross-validation holds each task out of one run's training. Folds differ by their tasks and their training, seeds only by their
draws; `fold_spread` separates the two variances.

Bias and variance are those of the 0/1 loss of greedy answers (Domingos 2000, "A unified bias-variance decomposition", theorem 2
for two classes, without noise). The main prediction of a task is the outcome of most trainings. Its bias is 1 if that is wrong,
else 0. Its variance is the share of trainings with the other outcome. The expected error is bias + variance if the bias is 0, and
bias - variance if it is 1, since an outcome other than a wrong one is right.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import Values, crossed_mean, differences, fold_spread, layout
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import Share, scale_of
from rlvr_exp.core.statistics import Estimate, mean_interval, t_interval
from rlvr_exp.evaluation.arms import BEFORE
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.report.plots import intervals
from rlvr_exp.runs.comparison import arm_values, interval, judged, undecidable
from rlvr_exp.runs.study import Findings, Job, JobRun, Study


class CrossValidation(options.CrossValidation, Study):
    def jobs(self) -> list[Job]:
        words = {f"fold{fold}": [f"data.folds={self.folds}", f"data.fold={fold}"] for fold in range(self.folds)}
        return [job for name, own in words.items() for job in self.arm(name, own)]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        folds = arm_values(runs, self.metric)
        held_out = [set(next(iter(of_fold.values()))) for of_fold in folds.values()]
        if len(set.union(*held_out)) < sum(map(len, held_out)):
            what = "folds were measured on the same tasks: only those of the test split are held out"
            raise InputError(InputProblem("study.words", what, remedy="leave evaluation.split at test"))
        seeds = [seed for seed in self.seeds if all(seed in of_fold for of_fold in folds.values())]
        if not seeds or len(folds) < self.folds:
            return Findings([f"Cannot tell: no seed completed in all {self.folds} folds."])
        sides = [folds]
        if all(self.metric in (run.summary.get(BEFORE) or {}) for run in runs if run.completed):
            sides.append(arm_values(runs, self.metric, BEFORE))
        tasks = [  # Those that every seed could judge on every side.
            (name, task)
            for name, of_fold in folds.items()
            for task in of_fold[seeds[0]]
            if all(task in side[name][seed] for side in sides for seed in seeds)
        ]
        after, *before = ([[side[name][seed][task] for name, task in tasks] for seed in seeds] for side in sides)
        each = {name: interval({seed: of_fold[seed] for seed in seeds}, self.metric) for name, of_fold in folds.items()}
        share = scale_of(self.metric).share
        rows = [
            {"fold": name, "seed": seed, "tasks": len(of_fold[seed]), "success": share(fmean(of_fold[seed].values()))}
            for name, of_fold in folds.items()
            for seed in seeds
        ]
        spread = fold_spread([[fmean(of_fold[seed].values()) for seed in seeds] for of_fold in folds.values()])
        if spread.between_seeds is None or spread.between_folds is None:
            both = 100 * math.sqrt(spread.of_folds)
            parts = (
                f"Folds have a standard deviation of {both:.1f} points; one seed cannot tell what of it is the seed's."
            )
        else:
            ends = (100 * math.sqrt(of) for of in (spread.between_folds, spread.between_seeds))
            parts = "Standard deviation between folds {:.1f} points, between seeds of a fold {:.1f}.".format(*ends)
        gains = [self._gain(first, after) for first in before]
        answer = [undecidable(folds), self._success(after), *gains, parts]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"folds": rows, "spread": [spread._asdict()]}
        plot = intervals(
            f"{self.metric} of each held-out fold",
            each,
            "with 95% intervals over seeds and tasks",
            scale_of(self.metric).bounded,
        )
        return Findings([*filter(None, answer)], tables, {"folds": plot})

    def _success(self, after: Sequence[Sequence[float]]) -> str:
        mean, low, high = (100 * end for end in crossed_mean(after))
        seeds = f"{len(after)} {'seed' if len(after) == 1 else 'seeds'}"
        counts = f"{len(after[0])} of them in {self.folds} folds, {seeds}"
        return f"{self.metric} is {mean:.1f}% [{low:.1f}, {high:.1f}] on tasks held out, {counts}."

    def _gain(self, before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> str:
        mean, low, high = (100 * end for end in crossed_mean(differences(before, after), -1.0, 1.0))
        few = of_few_seeds(len(after), "an interval")
        return f"Training gained {mean:+.1f} points [{low:+.1f}, {high:+.1f}] on them{few}."


Outcomes = Sequence[Sequence[Sequence[float]]]
"""1 or 0 by task, then by what training drew its tasks with, then by its seed."""


class Decomposed(NamedTuple):
    """Means over tasks with 95% intervals over tasks; that of the error is over the draws of training tasks too."""

    error: Estimate
    bias: Estimate
    unbiased_variance: Estimate
    """Variance of tasks without bias: it adds to the error."""
    biased_variance: Estimate
    """Of those with bias: it takes from the error."""


class Sources(NamedTuple):
    """Parts of the variance of an outcome over trainings, means over tasks with 95% intervals over tasks. They are
    estimated without bias, so that one of a part that is not there may lie below 0."""

    draw: Estimate
    """Of the training tasks that were drawn."""
    seed: Estimate
    both: Estimate
    """Of their interaction."""


def decomposed(outcomes: Outcomes) -> Decomposed:
    """Of a tie of outcomes the main prediction is the right one; the sums are the same with the wrong one.

    Raises:
        ValueError: no tasks, an outcome that is neither 0 nor 1, or tasks with other numbers of trainings.
    """
    if strange := sorted({value for task in outcomes for row in task for value in row} - {0.0, 1.0}):
        raise ValueError(f"decomposed: got outcomes {strange}, allowed 0 and 1")
    errors = [1 - fmean(fmean(row) for row in task) for task in outcomes]
    biases = [float(error > 0.5) for error in errors]
    variances = [1 - error if bias else error for error, bias in zip(errors, biases, strict=True)]
    by_draw = [[1 - fmean(task[draw]) for task in outcomes] for draw in range(len(outcomes[0]))]
    adding, taking = (
        [variance if bias == of else 0.0 for variance, bias in zip(variances, biases, strict=True)] for of in (0.0, 1.0)
    )
    return Decomposed(crossed_mean(by_draw), mean_interval(biases), mean_interval(adding), mean_interval(taking))


def sources(outcomes: Outcomes) -> Sources:
    """By the two-way layout of random effects of each task's outcomes (Searle, Casella and McCulloch 1992, chapter 4).

    Raises:
        ValueError: fewer than two draws or two seeds.
    """
    draws, seeds = len(outcomes[0]), len(outcomes[0][0])
    if min(draws, seeds) < 2:
        raise ValueError(f"sources: got {draws} draws and {seeds} seeds, allowed two and more of both")
    parts = [_components(task) for task in outcomes]
    return Sources(*(t_interval(part) for part in zip(*parts, strict=True)))


def _components(values: Values) -> tuple[float, float, float]:
    """Of rows, of columns, of the rest."""
    found = layout(values)
    rows, columns = (found.between_seeds - found.rest) / found.tasks, (found.between_tasks - found.rest) / found.seeds
    return rows, columns, found.rest


PARTS = {"draw": "the training tasks that were drawn", "seed": "the seed", "both": "the two together"}


class BiasVariance(options.BiasVariance, Study):
    def jobs(self) -> list[Job]:
        draws = range(1, self.resamples + 1)
        return [job for draw in draws for job in self.arm(f"resample{draw}", [f"data.resample={draw}"])]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        arms = arm_values(runs, self.metric)
        seeds = [seed for seed in self.seeds if all(seed in of_arm for of_arm in arms.values())]
        if len(arms) < self.resamples or not seeds:
            return Findings([f"Cannot tell: no seed completed with all {self.resamples} samples of training tasks."])
        tasks = judged([of_arm[seed] for of_arm in arms.values() for seed in seeds])
        outcomes = [[[of_arm[seed][task] for seed in seeds] for of_arm in arms.values()] for task in tasks]
        found, of = decomposed(outcomes), sources(outcomes) if len(seeds) > 1 else None
        error, bias, adds, takes = (
            f"{100 * one.value:.1f}% [{100 * one.low:.1f}, {100 * one.high:.1f}]" for one in found
        )
        failures = (
            f"Greedy answers fail on {error} of the tasks: {bias} are bias, failed by most trainings; variance adds {adds} where"
            f" most succeed and takes {takes} where most fail ({len(tasks)} tasks, {len(arms)} samples of training tasks, "
            f"{len(seeds)} seeds)."
        )
        tables = {"decomposition": _rows(found)} | ({"variance": _rows(of)} if of else {})
        shown = {name.replace("_", " "): Estimate(*(100 * end for end in one)) for name, one in found._asdict().items()}
        plot = intervals("Failures of greedy answers", shown, "points, with 95% intervals")
        return Findings(
            [*filter(None, [undecidable(arms), failures, _sources_in_words(of)])], tables, {"decomposition": plot}
        )


def _rows(found: Decomposed | Sources) -> list[dict[str, Any]]:
    shown = Share if isinstance(found, Decomposed) else float
    return [
        {"part": name, **{end: shown(value) for end, value in one._asdict().items()}}
        for name, one in found._asdict().items()
    ]


def _sources_in_words(found: Sources | None) -> str:
    if found is None:
        return "One seed cannot tell what of the variance is the seed's."
    total = sum(one.value for one in found)
    if total <= 0:
        return "No outcome varies from training to training."
    parts = [
        f"{PARTS[name]} {one.value / total:.0%} [{one.low / total:.0%}, {one.high / total:.0%}]"
        for name, one in found._asdict().items()
    ]
    return f"The variance of an outcome over trainings is {total:.3f}: of {', of '.join(parts)}."
