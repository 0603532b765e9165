"""What voting needs of ARC: a puzzle without its test outputs as a problem to run programs on, and outputs as answers."""

from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.arc.grid import COLOURS, Grid, from_lists, to_lists
from rlvr_exp.tasks.arc.puzzle import ENTRY_POINT, ArcPuzzle
from rlvr_exp.tasks.arc.relabel import LARGEST
from rlvr_exp.tasks.base import ShownTask
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

_NUMBERS = (int, float, complex)
_COLOUR_OF: dict[Any, int] = {colour: colour for colour in COLOURS}


def shown_task(puzzle: ArcPuzzle) -> ShownTask:
    """The train pairs, then the test inputs. A puzzle holds no test output, so that none can be in it."""
    shown = [Case((to_lists(given),), to_lists(wanted)) for given, wanted in puzzle.train]
    held_back = [Case((to_lists(given),), None) for given in puzzle.test]
    return ShownTask(PythonProblem(ENTRY_POINT, (*shown, *held_back)), len(shown))


def answer(output: Any) -> Grid | None:
    """An output as a grid of at most 30 by 30, which the verifier takes for the same: rows may be tuples, 1.0 is 1, true is
    no number. None: it is no such grid."""
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
