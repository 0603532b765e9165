"""Examples of imitation, in other forms of their tasks."""

from random import Random
from types import SimpleNamespace

import pytest

from rlvr_exp.algorithms.sft import IGNORED, Examples
from rlvr_exp.tasks.base import Task

POLICY = SimpleNamespace(
    encode_prompt=lambda text, tools=(): [ord(letter) for letter in text],
    encode_completion=lambda text: [ord(letter) for letter in text] + [0],
)
TASKS = [
    Task("a", "f", 0.0, "xy", None, "1"),
    Task("none", "f", 0.0, "x", None),
    Task("long", "f", 0.0, "x" * 9, None, "2"),
]


def examples(other: str, longest: int = 6) -> Examples:
    """Of the tasks, whose other form has the prompt `other`."""
    domain = SimpleNamespace(
        demonstrations=lambda task: [task],
        gold_completion=lambda task: task.gold,
        task_prompt=lambda task: task.inputs,
        tools=(),
        gold_turns=lambda task: (),
        variant=lambda task, rng: Task(task.id, "f", 0.0, other, None, task.gold) if other else task,
    )
    return Examples(POLICY, domain, TASKS, longest)


def test_what_cannot_be_imitated_is_counted() -> None:
    assert len(examples("")) == 1 and examples("").left_out == {"no gold answer": 1, "too long": 1}
    assert examples("")[0] == {"input_ids": [120, 121, 49, 0], "labels": [IGNORED, IGNORED, 49, 0]}


@pytest.mark.parametrize(("other", "seen"), [("", "xy"), ("yx", "yx"), ("yxyx", "yxyx"), ("yxyxyx", "xy")])
def test_another_form_has_the_same_answer_and_one_that_is_too_long_is_not_taken(other: str, seen: str) -> None:
    found = examples(other).variant(0, Random(0))
    assert found["input_ids"] == [*map(ord, seen), 49, 0] and found["labels"] == [IGNORED] * len(seen) + [49, 0]
