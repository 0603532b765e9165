"""The band of success rates: tasks outside leave the pool, others take their place."""

from pretend import SPREAD
from test_learnability import RATES

from rlvr_exp.curriculum.band import Band
from rlvr_exp.curriculum.base import Observation


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
