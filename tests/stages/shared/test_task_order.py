"""What a mixture makes of a run's tasks and of its curriculum."""

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Uniform
from rlvr_exp.stages.shared.training import curriculum_of, mixed_tasks
from rlvr_exp.tasks.base import Task

TASKS = [
    Task(f"{source}{number}", "f", number / 8 + start, None, None, source=source)
    for number in range(8)
    for start, source in enumerate("abc")
]


def config_of(*words: str):
    return compose(["+stage=grpo", *words]).config


def test_without_a_mixture_nothing_changes() -> None:
    config = config_of("seed=3")
    assert mixed_tasks(config, TASKS) == TASKS
    assert curriculum_of(config, TASKS).pick(0, 30) == Uniform(TASKS, 3).pick(0, 30)


def test_only_sources_of_the_mixture_are_trained_on() -> None:
    kept = mixed_tasks(config_of("data.mix={c: 1, a: 1}"), TASKS)
    assert kept == [task for task in TASKS if task.source != "b"], "in their order"


def test_the_order_of_the_shares_is_nothing_and_the_seed_is_all() -> None:
    words = ("data.mix={a: 2, b: 1}", "data.mix={b: 1, a: 2}")
    first, turned = (curriculum_of(config_of(one), TASKS).pick(0, 40) for one in words)
    assert first == turned != curriculum_of(config_of(words[0], "seed=1"), TASKS).pick(0, 40)


def test_sources_of_one_size_are_shuffled_apart() -> None:
    picked = curriculum_of(config_of("data.mix={a: 1, b: 1}"), TASKS).pick(0, 16)
    orders = [[task.id[1:] for task in picked if task.source == source] for source in "ab"]
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


def test_a_source_that_its_curriculum_cannot_take_is_named() -> None:
    words = ["curriculum=manual", "curriculum.cuts=[0.5]", "curriculum.steps=[1]", "data.mix={a: 1, b: 1}"]
    with pytest.raises(InputError, match="band 0 has no task among those of 'b'"):
        curriculum_of(config_of(*words), TASKS)
