"""Learnability: tasks that are solved sometimes are drawn most, others again once they are forgotten."""

from collections import Counter

import pytest
from pretend import SPREAD

from rlvr_exp.curriculum.base import Observation
from rlvr_exp.curriculum.learnability import Learnability

RATES = {task.id: (0, 2, 4)[place % 3] for place, task in enumerate(SPREAD)}
"""Successes of four of each task: never, half, always."""


def walked(steps: int, **given) -> list[list[str]]:
    curriculum, found = Learnability(SPREAD, 0, **given), []
    for step in range(steps):
        found.append([one.id for one in curriculum.pick(4 * step, 4)])
        curriculum.observe([Observation(one, RATES[one], 4, RATES[one] == 2) for one in found[-1]])
    return found


def test_tasks_between_are_drawn_most():
    drawn = Counter(RATES[one] for picked in walked(200, decay=1.0)[50:] for one in picked)
    assert drawn[2] > 4 * max(drawn[0], drawn[4])


def test_what_is_forgotten_is_drawn_again():
    never = Counter(RATES[one] for picked in walked(200, decay=0.5)[50:] for one in picked)
    assert min(never[0], never[4]) > never[2] / 3


def test_the_share_of_the_unexplored_and_all_of_them_at_first():
    found = walked(20, unexplored=0.5)
    known: set[str] = set()
    for step, picked in enumerate(found):
        new = set(picked) - known
        assert len(new) == (4 if step == 0 else min(2, 20 - len(known)))
        known |= set(picked)
    assert len(known) == 20


def test_nothing_new_is_looked_for_at_a_share_of_zero():
    assert len({one for picked in walked(20, unexplored=0.0) for one in picked}) == 4


def test_learnability_is_the_posterior_s_expectation():
    curriculum = Learnability(SPREAD, 0, decay=0.5, prior=1.0)
    assert curriculum.learnability("task0") == pytest.approx(1 / 6)
    curriculum.observe([Observation("task0", 4, 4, False)])
    assert curriculum.learnability("task0") == pytest.approx(5 * 1 / (6 * 7))
    curriculum.observe([])
    assert curriculum.learnability("task0") == pytest.approx(3 * 1 / (4 * 5)), (
        "four successes count as two a step later"
    )
    curriculum.observe([Observation("task0", 0, 2, False)])
    assert curriculum.learnability("task0") == pytest.approx(2 * 3 / (5 * 6))
    assert curriculum.metrics() == {"pool": 0.05, "learnability": pytest.approx(0.2)}
