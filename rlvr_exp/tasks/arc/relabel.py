"""New ARC tasks from old ones: the same pairs in another order, and the same inputs with the outputs of a program. Runs no
program: whoever did brings the outputs."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.arc.difficulty import score
from rlvr_exp.tasks.arc.grid import Grid, from_lists
from rlvr_exp.tasks.arc.puzzle import ArcPuzzle
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.formats.python_io import Case

LARGEST = 30
"""Rows and columns of the largest grid of ARC."""
INVALID, CONSTANT, IDENTITY = "no_grids", "constant", "identity"
"""Why outputs make no task: some are no grids, all are the same, each is its input."""


def reordered(task: Task, rng: Random) -> Task:
    """The task with its pairs in another order: any of them may be held back. A task with a hidden output stays as it is."""
    if task.inputs.hidden:
        return task
    cases = list(task.problem.cases)
    rng.shuffle(cases)
    return _of_cases(task, cases)


def relabelled(task: Task, outputs: Sequence[Any]) -> Task | str:
    """The task on the same inputs that has these outputs, which whoever returned them solves; or why there is none.

    Args:
        outputs: of each case of the task, as `Execution` has them.
    """
    cases = task.problem.cases
    try:
        grids = [from_lists(output, "output") for output in outputs]
    except InputError:
        return INVALID
    if len(grids) != len(cases) or any(len(grid) > LARGEST or len(grid[0]) > LARGEST for grid in grids):
        return INVALID
    if len(set(grids)) == 1:
        return CONSTANT
    if all(output == case.args[0] for output, case in zip(outputs, cases, strict=True)):
        return IDENTITY
    made = [Case(case.args, output) for case, output in zip(cases, outputs, strict=True)]
    found = _of_cases(task, made)
    name = f"{task.id}~{content_hash(list(outputs))[:12]}"
    return replace(found, id=name, difficulty=score(found.inputs), gold=None, negatives=())


def input_shape(task: Task) -> tuple[int, int] | None:
    """Rows and columns of its inputs; None where they differ."""
    shapes = {(len(case.args[0]), len(case.args[0][0])) for case in task.problem.cases}
    return shapes.pop() if len(shapes) == 1 else None


def grids_of(task: Task) -> list[Grid]:
    """Every grid of the task, inputs and outputs, those held back too."""
    cases = task.problem.cases
    shown = [grid for pair in task.inputs.train for grid in pair]
    return [*shown, *task.inputs.test, *(_grid(case.expected) for case in cases[len(task.inputs.train) :])]


def _of_cases(task: Task, cases: Sequence[Case]) -> Task:
    """The task with other cases, of which it shows as many as before."""
    shown = len(task.inputs.train)
    train = tuple((_grid(case.args[0]), _grid(case.expected)) for case in cases[:shown])
    puzzle = ArcPuzzle(train, tuple(_grid(case.args[0]) for case in cases[shown:]))
    return replace(task, inputs=puzzle, problem=replace(task.problem, cases=tuple(cases)))


def _grid(rows: Sequence[Sequence[int]]) -> Grid:
    return tuple(map(tuple, rows))
