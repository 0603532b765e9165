"""Cross-validation: success on tasks that a training did not see. Each task is held out of one run's training.

Folds differ by their tasks and their training, seeds by their draws alone. The two variances are separated (see fold_spread).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import FoldSpread, crossed_mean, differences, fold_spread
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.evaluation.arms import BEFORE
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.report.plots import intervals
from rlvr_exp.runs.comparison import Values, arm_values, interval, undecidable
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import Findings, Study


class CrossValidation(options.CrossValidation, Study):
    def jobs(self) -> list[Job]:
        folds = range(self.folds)
        return [
            job for fold in folds for job in self.arm(f"fold{fold}", [f"data.folds={self.folds}", f"data.fold={fold}"])
        ]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        folds = arm_values(runs, self.metric)
        _refuse_shared_tasks(folds)
        seeds = [seed for seed in self.seeds if all(seed in of_fold for of_fold in folds.values())]
        if not seeds or len(folds) < self.folds:
            return Findings([f"Cannot tell: no seed completed in all {self.folds} folds."])
        start = arm_values(runs, self.metric, BEFORE) if _all_began(runs, self.metric) else None
        tasks = _judged([folds] if start is None else [folds, start], seeds)
        after, before = _rows(folds, tasks, seeds), None if start is None else _rows(start, tasks, seeds)
        spread = fold_spread([[fmean(of_fold[seed].values()) for seed in seeds] for of_fold in folds.values()])
        each = {name: interval({seed: of_fold[seed] for seed in seeds}, self.metric) for name, of_fold in folds.items()}
        answer = [undecidable(folds), self._success(after), *self._gain(before, after), _spread_in_words(spread)]
        tables = {"folds": _fold_rows(folds, seeds), "spread": [spread._asdict()]}
        plot = intervals(f"{self.metric} of each held-out fold", each, "with 95% intervals over seeds and tasks")
        return Findings([*filter(None, answer)], tables, {"folds": plot})

    def _success(self, after: Sequence[Sequence[float]]) -> str:
        mean, low, high = (100 * end for end in crossed_mean(after))
        seeds = f"{len(after)} {'seed' if len(after) == 1 else 'seeds'}"
        counts = f"{len(after[0])} of them in {self.folds} folds, {seeds}"
        return f"{self.metric} is {mean:.1f}% [{low:.1f}, {high:.1f}] on tasks held out, {counts}."

    def _gain(self, before: Sequence[Sequence[float]] | None, after: Sequence[Sequence[float]]) -> list[str]:
        if before is None:
            return []
        mean, low, high = (100 * end for end in crossed_mean(differences(before, after), -1.0, 1.0))
        few = of_few_seeds(len(after), "an interval")
        return [f"Training gained {mean:+.1f} points [{low:+.1f}, {high:+.1f}] on them{few}."]


def _refuse_shared_tasks(folds: Mapping[str, Values]) -> None:
    """Raises InputError: runs were not measured on their own fold."""
    held_out = [set(next(iter(of_fold.values()))) for of_fold in folds.values()]
    if len(set.union(*held_out)) < sum(map(len, held_out)):
        what = "folds were measured on the same tasks: only those of the test split are held out"
        raise InputError(InputProblem("study.words", what, remedy="leave evaluation.split at test"))


def _all_began(runs: Sequence[Run], metric: str) -> bool:
    """Whether every completed run was measured before training, too."""
    return all(metric in (run.summary.get(BEFORE) or {}) for run in runs if run.completed)


def _judged(sides: Sequence[Mapping[str, Values]], seeds: Sequence[int]) -> dict[str, list[str]]:
    """By fold, the tasks that every seed could judge on every side."""
    return {
        name: [task for task in of_fold[seeds[0]] if all(task in side[name][seed] for side in sides for seed in seeds)]
        for name, of_fold in sides[0].items()
    }


def _rows(side: Mapping[str, Values], tasks: Mapping[str, Sequence[str]], seeds: Sequence[int]) -> list[list[float]]:
    """By seed, then by the tasks of all folds."""
    return [[side[name][seed][task] for name, of_fold in tasks.items() for task in of_fold] for seed in seeds]


def _spread_in_words(spread: FoldSpread) -> str:
    if spread.between_seeds is None or spread.between_folds is None:
        both = 100 * math.sqrt(spread.of_folds)
        return f"Folds have a standard deviation of {both:.1f} points; one seed cannot tell what of it is the seed's."
    folds, seeds = (100 * math.sqrt(of) for of in (spread.between_folds, spread.between_seeds))
    return f"Standard deviation between folds {folds:.1f} points, between seeds of a fold {seeds:.1f}."


def _fold_rows(folds: Mapping[str, Values], seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"fold": name, "seed": seed, "tasks": len(of_fold[seed]), "success": fmean(of_fold[seed].values())}
        for name, of_fold in folds.items()
        for seed in seeds
    ]
