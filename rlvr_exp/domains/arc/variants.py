"""Other forms of an ARC task: its pairs in another order, its inputs with the outputs of a program, other colours, and the puzzle
without its test outputs, for voting. This module runs no program: the caller brings the outputs.

Colours, noise and grid styles are domain randomisation (Tobin et al. 2017, arXiv:1703.06907). Each draw depends on the data's seed
and the task's id alone, so that a task looks the same in every stage and run.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import stream
from rlvr_exp.domains.arc.puzzle import (
    COLOURS,
    ENTRY_POINT,
    ArcPuzzle,
    Grid,
    change,
    from_lists,
    grid_of,
    score,
    to_lists,
)
from rlvr_exp.tasks.base import ShownTask, Task
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

LARGEST = 30
"""Rows and columns of the largest grid of ARC."""
INVALID, CONSTANT, IDENTITY = "no_grids", "constant", "identity"
"""Reasons for which outputs make no task: some are no grids, all are the same, each is its input."""


def reordered(task: Task, rng: Random) -> Task:
    """The task with its pairs in another order, so that any pair may be the test. A task with a hidden output is unchanged."""
    if task.inputs.hidden:
        return task
    cases = list(task.problem.cases)
    rng.shuffle(cases)
    return _of_cases(task, cases)


def relabelled(task: Task, outputs: Sequence[Any]) -> Task | str:
    """The task on the same inputs with these outputs, which the program behind them solves; or the reason for which there is none.

    Args:
        outputs: one for each case of the task, as in `Execution`.
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
    """Rows and columns of its inputs; None if they differ."""
    shapes = {(len(case.args[0]), len(case.args[0][0])) for case in task.problem.cases}
    return shapes.pop() if len(shapes) == 1 else None


def grids_of(task: Task) -> list[Grid]:
    """Every grid of the task, the test outputs included."""
    cases = task.problem.cases
    shown = [grid for pair in task.inputs.train for grid in pair]
    return [*shown, *task.inputs.test, *(grid_of(case.expected) for case in cases[len(task.inputs.train) :])]


def _of_cases(task: Task, cases: Sequence[Case]) -> Task:
    """The task with other cases and as many train pairs as before."""
    shown = len(task.inputs.train)
    train = tuple((grid_of(case.args[0]), grid_of(case.expected)) for case in cases[:shown])
    puzzle = ArcPuzzle(train, tuple(grid_of(case.args[0]) for case in cases[shown:]))
    return replace(task, inputs=puzzle, problem=replace(task.problem, cases=tuple(cases)))


def other_colours(task: Task, seed: int) -> Task:
    """The task with the colours 1 to 9 permuted in all its grids; 0, the background, stays. Its reference and wrong programs
    are dropped, as they may name colours."""
    order = [*range(1, 10)]
    stream(seed, "colours", task.id).shuffle(order)
    new = (0, *order)

    def changed(grid: Sequence[Sequence[int]]) -> Grid:
        return tuple(tuple(new[cell] for cell in row) for row in grid)

    puzzle, problem = task.inputs, task.problem
    train = tuple((changed(given), changed(wanted)) for given, wanted in puzzle.train)
    found = ArcPuzzle(train, tuple(map(changed, puzzle.test)), puzzle.hidden)
    cases = tuple(Case((to_lists(changed(case.args[0])),), to_lists(changed(case.expected))) for case in problem.cases)
    own = {"inputs": found, "problem": replace(problem, cases=cases), "difficulty": score(found)}
    return replace(task, **own, gold=None, negatives=())


def noisy(puzzle: ArcPuzzle, share: float, seed: int, name: str) -> ArcPuzzle:
    """The puzzle with this share of the cells of its pairs in a colour drawn from all ten. Test inputs stay."""
    rng = stream(seed, "noise", name)

    def changed(grid: Grid) -> Grid:
        return tuple(tuple(rng.randrange(10) if rng.random() < share else cell for cell in row) for row in grid)

    return replace(puzzle, train=tuple((changed(given), changed(wanted)) for given, wanted in puzzle.train))


def grid_style(styles: Sequence[str], name: str, seed: int) -> str:
    """The way of writing grids for the task of this id."""
    return stream(seed, "grid", name).choice([*styles])


_NUMBERS = (int, float, complex)
_COLOUR_OF: dict[Any, int] = {colour: colour for colour in COLOURS}


def shown_task(puzzle: ArcPuzzle) -> ShownTask:
    """The train pairs, then the test inputs. A puzzle has no test outputs, so none can leak."""
    shown = [Case((to_lists(given),), to_lists(wanted)) for given, wanted in puzzle.train]
    held_back = [Case((to_lists(given),), None) for given in puzzle.test]
    return ShownTask(PythonProblem(ENTRY_POINT, (*shown, *held_back)), len(shown))


WRONG_SHAPE, RIGHT_SHAPE = 0.05, 0.1
"""Credit of a grid, and of one with the right numbers of rows and columns, before its cells count."""


def credit(output: Any, expected: Sequence[Sequence[int]]) -> float:
    """The share of cells that a wrong grid has right, for its part after `RIGHT_SHAPE`; 0 if the output is no grid."""
    grid = answer(output)
    if grid is None:
        return 0.0
    if (len(grid), len(grid[0])) != (len(expected), len(expected[0])):
        return WRONG_SHAPE
    return RIGHT_SHAPE + (1 - RIGHT_SHAPE) * (1 - change(grid, grid_of(expected)))


def answer(output: Any) -> Grid | None:
    """An output as the grid that the verifier equates with it: rows may be tuples, 1.0 is 1, true is no number. None if it is
    no grid of at most 30 by 30."""
    if type(output) not in (list, tuple) or len(output) > LARGEST:
        return None
    rows = [[_colour(cell) for cell in row] if type(row) in (list, tuple) else row for row in output]
    try:
        grid = from_lists(rows, "output")
    except InputError:
        return None
    return grid if len(grid[0]) <= LARGEST else None


def _colour(cell: Any) -> Any:
    return _COLOUR_OF.get(cell, cell) if type(cell) in _NUMBERS else cell
