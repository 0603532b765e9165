"""Families: those whose groups teach are picked most, others again once they are forgotten."""

from collections import Counter
from types import SimpleNamespace

import pytest

from rlvr_exp.curriculum.base import Observation
from rlvr_exp.curriculum.families import Families

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
    curriculum = Families(TASKS, 0, decay=0.5, prior=1.0)
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
