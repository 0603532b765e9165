"""Curricula by observed success: a pool within bounds, tasks by learnability, families by learning signal."""

from collections import Counter
from types import SimpleNamespace

import pytest
from pretend import SPREAD

from rlvr_exp.curriculum.base import Observation
from rlvr_exp.curriculum.success_rate import Band, Families, Learnability

RATES = {task.id: (0, 2, 4)[place % 3] for place, task in enumerate(SPREAD)}
"""Successes of four of each task: never, half, always."""


def steps(curriculum: Band, first: int, last: int, count: int = 3) -> list[list[str]]:
    found = []
    for step in range(first, last):
        found.append([one.id for one in curriculum.pick(count * step, count)])
        curriculum.observe([Observation(one, RATES[one], 4, RATES[one] == 2) for one in found[-1]])
    return found


def test_tasks_outside_leave_and_are_replaced_until_only_those_between_are_left():
    curriculum = Band(SPREAD, 0, size=8, least_samples=4)
    found = steps(curriculum, 0, 40)
    assert {one for picked in found[:15] for one in picked} == RATES.keys(), "all are tried"
    assert {RATES[one] for picked in found[-10:] for one in picked} == {2}
    assert curriculum.metrics() == {"pool": 0.35, "resting": 0.65}


def test_a_task_stays_until_it_has_enough_completions():
    curriculum = Band(SPREAD, 0, size=6, least_samples=8)
    steps(curriculum, 0, 2)
    assert curriculum.metrics()["resting"] == 0
    steps(curriculum, 2, 4)
    assert curriculum.metrics()["resting"] > 0


def test_the_bounds_belong_to_the_band():
    curriculum = Band(SPREAD, 0, size=6, low=0.5, high=0.5, least_samples=4)
    steps(curriculum, 0, 40)
    assert {RATES[one] for one in curriculum.state_dict()["pool"]} == {2}


def test_those_that_rest_return_where_a_pick_has_no_others():
    curriculum = Band(SPREAD[:4], 0, size=4, least_samples=4)
    for found in steps(curriculum, 0, 6, count=4):
        assert len(set(found)) == 4


def test_without_a_verdict_nothing_leaves():
    curriculum = Band(SPREAD, 0, size=6, least_samples=1)
    picked = curriculum.pick(0, 3)
    curriculum.observe([Observation(one.id, 0, 0, False) for one in picked])
    assert curriculum.metrics() == {"pool": 0.3, "resting": 0.0}


def test_a_rate_is_measured_anew_each_time():
    curriculum = Band(SPREAD, 0, size=1, least_samples=4)
    (task,) = curriculum.pick(0, 1)
    curriculum.observe([Observation(task.id, 2, 4, True)])
    curriculum.observe([Observation(task.id, 3, 3, False)])
    assert task.id in curriculum.state_dict()["pool"], "three completions are too few"
    curriculum.observe([Observation(task.id, 1, 1, False)])
    assert curriculum.state_dict()["resting"] == [task.id], "the last four passed, six of all eight"


def learned(steps: int, **given) -> list[list[str]]:
    curriculum, found = Learnability(SPREAD, 0, **given), []
    for step in range(steps):
        found.append([one.id for one in curriculum.pick(4 * step, 4)])
        curriculum.observe([Observation(one, RATES[one], 4, RATES[one] == 2) for one in found[-1]])
    return found


def test_tasks_between_are_drawn_most():
    drawn = Counter(RATES[one] for picked in learned(200, decay=1.0)[50:] for one in picked)
    assert drawn[2] > 4 * max(drawn[0], drawn[4])


def test_what_is_forgotten_is_drawn_again():
    never = Counter(RATES[one] for picked in learned(200, decay=0.5)[50:] for one in picked)
    assert min(never[0], never[4]) > never[2] / 3


def test_the_share_of_the_unexplored_and_all_of_them_at_first():
    found = learned(20, unexplored=0.5)
    known: set[str] = set()
    for step, picked in enumerate(found):
        new = set(picked) - known
        assert len(new) == (4 if step == 0 else min(2, 20 - len(known)))
        known |= set(picked)
    assert len(known) == 20


def test_nothing_new_is_looked_for_at_a_share_of_zero():
    assert len({one for picked in learned(20, unexplored=0.0) for one in picked}) == 4


def test_learnability_is_the_posterior_s_expectation():
    curriculum = Learnability(SPREAD, 0, decay=0.5)
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


TEACHES = {"often": 3, "seldom": 1, "never": 0}
"""Of four groups of a family."""
TASKS = [
    SimpleNamespace(id=f"{family}{number}", family=family)
    for family in ("often", "seldom", "never")
    for number in range(40)
]


def teaches(task: str) -> bool:
    family = task.rstrip("0123456789")
    return int(task.removeprefix(family)) % 4 < TEACHES[family]


def walked(steps: int, **given) -> list[list[str]]:
    curriculum, found = Families(TASKS, 0, **given), []
    for step in range(steps):
        found.append([one.id for one in curriculum.pick(6 * step, 6)])
        curriculum.observe([Observation(one, 2, 4, teaches(one)) for one in found[-1]])
    return found


def families(picked: list[list[str]]) -> Counter:
    return Counter(task.rstrip("0123456789") for tasks in picked for task in tasks)


def test_families_are_picked_in_proportion_to_what_teaches():
    late = families(walked(400, decay=1.0)[100:])
    assert late["often"] / late["seldom"] == pytest.approx(3, rel=0.25)
    assert late["never"] < late["seldom"] / 3


def test_what_is_forgotten_is_picked_again():
    late = families(walked(400, decay=0.5)[100:])
    assert late["never"] > late["often"] / 3


def test_in_a_family_all_tasks_take_turns():
    picked = Counter(task for tasks in walked(400) for task in tasks if task.startswith("often"))
    assert len(picked) == 40
    assert max(picked.values()) - min(picked.values()) <= 1


def test_the_expected_share_is_the_posterior_s_and_a_task_counts_once_in_a_step():
    curriculum = Families(TASKS, 0, decay=0.5)
    assert curriculum.teaching("often") == 1 / 2
    curriculum.observe([Observation("often0", 0, 4, False), Observation("often0", 2, 4, True)])
    assert curriculum.teaching("often") == 2 / 3
    curriculum.observe([Observation("often1", 0, 4, False), Observation("often2", 0, 0, False)])
    assert curriculum.teaching("often") == pytest.approx(1.5 / 3.5), (
        "half of a group that teaches, and one that does not"
    )
    assert curriculum.metrics() == {"pool": pytest.approx(1 / 3), "teaching": pytest.approx((1.5 / 3.5 + 1) / 3)}


def test_of_one_family_all_tasks_take_turns():
    curriculum = Families(TASKS[:40], 0)
    picked = Counter(task.id for step in range(20) for task in curriculum.pick(4 * step, 4))
    assert set(picked.values()) == {2}
