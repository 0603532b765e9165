"""Solved examples (shots) before a task's prompt: their choice, and their form in the prompt.

They are drawn from the train split by the seed of the data and the task's id, so that a task has the same prompt in
every stage and run. The task itself and tasks that share its content are never drawn.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import stream
from rlvr_exp.tasks.base import Task

Solved = TypeVar("Solved")
SOLVED = {True: "Here is a solved example.\n\n{}\n{}\n\n", False: "{}{}\n\n"}
"""An example, prompt and answer, in words or bare."""


def solved_tasks(train: Iterable[Task]) -> list[Task]:
    """Those that have a gold, each once, whatever a bootstrap drew."""
    return [*{task.id: task for task in train if task.gold is not None}.values()]


class Alike:
    """Whether two tasks are one, or share a part of their content, whose keys are found once a task."""

    def __init__(self, keys: Callable[[Task], Iterable[Hashable]]):
        self._keys, self._known = keys, dict[str, set[Hashable]]()

    def __call__(self, one: Task, other: Task) -> bool:
        return one.id == other.id or not self._of(one).isdisjoint(self._of(other))

    def _of(self, task: Task) -> set[Hashable]:
        if task.id not in self._known:
            self._known[task.id] = {*self._keys(task)}
        return self._known[task.id]


def chosen_shots(
    solved: Sequence[Solved], task: Task, wanted: int, seed: int, alike: Callable[[Solved, Task], bool]
) -> list[Solved]:
    """`count` different solved examples for a task.

    Args:
        alike: whether an example is the task itself, or shares its content.

    Raises:
        InputError: there are not enough others.
    """
    rng, left, found = stream(seed, "shots", task.id), [*range(len(solved))], list[Solved]()
    while left and len(found) < wanted:
        place = rng.randrange(len(left))
        left[place], left[-1] = left[-1], left[place]
        shot = solved[left.pop()]
        if not alike(shot, task):
            found.append(shot)
    if len(found) < wanted:
        what, remedy = f"only {len(found)} solved examples", "ask for fewer, or take data with a larger train split"
        raise InputError(InputProblem("data.prompt.shots", what, str(wanted), remedy=remedy))
    return found


def after_examples(prompt: str, examples: Iterable[tuple[str, str]], in_words: bool) -> str:
    """The prompt after solved examples, each a prompt and its answer."""
    return "".join(SOLVED[in_words].format(*example) for example in examples) + prompt
