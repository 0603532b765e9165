"""Importance of options: what decides is found, chance is called chance."""

import random

from rlvr_exp.config.study import Dimension
from rlvr_exp.runs.studies import trials as importance
from rlvr_exp.runs.studies.trials import FEWEST, importances

SPACE = [
    Dimension("a", "uniform", (0.0, 1.0)),
    Dimension("b", "log_int", (1, 64)),
    Dimension("c", "choice", ("x", "y")),
]


def trials(count, value, seed=0):
    draws = random.Random(seed)
    params = [{"a": draws.random(), "b": draws.randint(1, 64), "c": draws.choice(("x", "y"))} for _ in range(count)]
    return [(one, value(one, draws)) for one in params]


def test_what_decides_comes_first_in_either_direction(monkeypatch):
    monkeypatch.setattr(importance, "DEALS", 99)
    rises = trials(24, lambda one, draws: one["a"] + 0.05 * draws.random())
    found = importances(SPACE, rises, maximize=True)
    assert next(iter(found)) == "a" and found["a"].sure and found["a"].p <= 0.05
    assert not found["b"].sure and not found["c"].sure
    assert abs(sum(one.value for one in found.values()) - 1) < 1e-9
    falls = [(one, -value) for one, value in rises]
    assert importances(SPACE, falls, maximize=False) == found


def test_chance_is_seldom_taken_for_more(monkeypatch):
    monkeypatch.setattr(importance, "DEALS", 99)
    sure = sum(
        one.sure
        for seed in range(2)
        for one in importances(SPACE, trials(16, lambda _, draws: draws.random(), seed), True).values()
    )
    assert sure == 0


def test_few_trials_tell_nothing():
    assert importances(SPACE, trials(FEWEST - 1, lambda one, _: one["a"]), True) == {}
