"""Bias and variance of failures: how much each adds, and whether the training tasks or the seed cause the variance.

For the 0/1 loss of greedy answers (Domingos 2000, "A unified bias-variance decomposition", theorem 2 for two classes, without
noise): the main prediction of a task is the outcome of most trainings. Its bias is 1 if that is wrong, else 0. Its variance is the
share of trainings with the other outcome. The expected error is bias + variance if the bias is 0, and bias - variance if it is 1,
since an outcome other than a wrong one is right.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import Values, crossed_mean, layout
from rlvr_exp.core.statistics import Estimate, mean_interval, t_interval
from rlvr_exp.report.plots import intervals
from rlvr_exp.runs.comparison import arm_values, judged, undecidable
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import Findings, Study

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
    """Of the two together: what neither does alone."""


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
        return [job for draw in self._draws for job in self.arm(f"resample{draw}", [f"data.resample={draw}"])]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        arms = arm_values(runs, self.metric)
        seeds = [seed for seed in self.seeds if all(seed in of_arm for of_arm in arms.values())]
        if len(arms) < self.resamples or not seeds:
            return Findings([f"Cannot tell: no seed completed with all {self.resamples} samples of training tasks."])
        tasks = judged([of_arm[seed] for of_arm in arms.values() for seed in seeds])
        outcomes = [[[of_arm[seed][task] for seed in seeds] for of_arm in arms.values()] for task in tasks]
        found = decomposed(outcomes)
        of = sources(outcomes) if len(seeds) > 1 else None
        runs_counted = f"{len(tasks)} tasks, {len(arms)} samples of training tasks, {len(seeds)} seeds"
        answer = [undecidable(arms), *_in_words(found, runs_counted), _sources_in_words(of)]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"decomposition": _rows(found)}
        if of is not None:
            tables["variance"] = _rows(of)
        shown = {name.replace("_", " "): Estimate(*(100 * end for end in one)) for name, one in _named(found)}
        plot = intervals("Failures of greedy answers", shown, "points, with 95% intervals")
        return Findings([*filter(None, answer)], tables, {"decomposition": plot})

    @property
    def _draws(self) -> range:
        return range(1, self.resamples + 1)


def _named(found: Decomposed | Sources) -> list[tuple[str, Estimate]]:
    return [*found._asdict().items()]


def _rows(found: Decomposed | Sources) -> list[dict[str, Any]]:
    return [{"part": name, **one._asdict()} for name, one in _named(found)]


def _in_words(found: Decomposed, counted: str) -> list[str]:
    error, bias, adds, takes = (_points(one) for _, one in _named(found))
    return [
        f"Greedy answers fail on {error} of the tasks: {bias} are bias, failed by most trainings; variance adds {adds} where"
        f" most succeed and takes {takes} where most fail ({counted})."
    ]


def _sources_in_words(found: Sources | None) -> str:
    if found is None:
        return "One seed cannot tell what of the variance is the seed's."
    total = sum(one.value for one in found)
    if total <= 0:
        return "No outcome varies from training to training."
    parts = [
        f"{PARTS[name]} {one.value / total:.0%} [{one.low / total:.0%}, {one.high / total:.0%}]"
        for name, one in _named(found)
    ]
    return f"The variance of an outcome over trainings is {total:.3f}: of {', of '.join(parts)}."


def _points(one: Estimate) -> str:
    value, low, high = (100 * end for end in one)
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"
