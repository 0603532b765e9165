"""The smallest difference that a held-out set can show, before anything is measured."""

import math
import random

import pytest
from scipy import stats

from rlvr_exp.core.measures import detectable, smallest_planned
from rlvr_exp.core.statistics import t_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 29, 100, 999])
def test_quantiles_are_students(freedom: int) -> None:
    for level in (0.8, 0.975):
        assert t_quantile(level, freedom) == pytest.approx(stats.t.ppf(level, freedom), rel=1e-9)


def test_the_power_is_what_is_promised() -> None:
    """Of tasks that are solved about half of the time, a true difference of that size is found in 80 of 100 repetitions."""
    draw, tasks, samples = random.Random(0), 40, 4
    shift = smallest_planned(tasks, samples)

    def rate(chance: float) -> float:
        return sum(draw.random() < chance for _ in range(samples)) / samples

    found = 0
    for _ in range(1000):
        changes = [rate(0.5 + shift / 2) - rate(0.5 - shift / 2) for _ in range(tasks)]
        found += stats.ttest_1samp(changes, 0).pvalue < 0.05
    assert 0.76 < found / 1000 < 0.86


def test_it_shrinks_with_the_root_of_tasks_and_samples() -> None:
    assert smallest_planned(1, 8) is None
    assert smallest_planned(400, 8) == pytest.approx(0.035, abs=0.001)
    assert smallest_planned(400, 1) == pytest.approx(math.sqrt(8) * smallest_planned(400, 8))


@pytest.mark.parametrize(
    ("tasks", "samples", "greedy", "words"),
    [
        (1, 8, True, "no difference: a single task"),
        (2, 8, True, "none by 8 samples, none by the greedy answer of each of 2 tasks"),
        (30, 1, False, "37.4 points by 1 sample of each of 30 tasks"),
    ],
)
def test_in_words(tasks: int, samples: int, greedy: bool, words: str) -> None:
    assert detectable(tasks, samples, greedy).startswith(words)
