"""Bias and variance of outcomes that are right or wrong, and what the variance comes of. Pure functions of numbers.

For 0/1 loss (Domingos 2000, "A unified bias-variance decomposition", theorem 2 for two classes, without noise): the main
prediction of a task is the outcome of most trainings; its bias is 1 where that is wrong, else 0; its variance is the
share of trainings whose outcome is another one. The expected error is bias + variance where the bias is 0, and
bias - variance where it is 1, since another outcome than a wrong one is right.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from rlvr_exp.core.crossed import Values, crossed_mean, layout
from rlvr_exp.core.statistics import Estimate, mean_interval, t_interval

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
