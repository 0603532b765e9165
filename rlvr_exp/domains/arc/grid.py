"""Grids and their text. Owns the one type of a grid and its exact round trip to text; knows no files and no tasks.

A grid is a tuple of rows of equal length, each a tuple of integers 0 to 9, never empty and of any size.
"""

import json
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem

Grid = tuple[tuple[int, ...], ...]
DIGITS = frozenset("0123456789")
COLOURS = frozenset(range(10))


def from_lists(value: Any, where: str) -> Grid:
    """A grid from lists of lists, as JSON gives them. `where` names the file and key in the fault.

    Raises:
        InputError: it is no rectangle of integers 0 to 9.
    """
    if type(value) is list and set(map(type, value)) == {list}:
        grid = tuple(map(tuple, value))
        cells = list(chain.from_iterable(grid))
        # By type and not by value: true and 1.0 equal 1 in Python but are not colours.
        if len(set(map(len, grid))) == 1 and set(map(type, cells)) == {int} and COLOURS.issuperset(cells):
            return grid
    raise _fault_of(value, where)


def _fault_of(value: Any, where: str) -> InputError:
    """Of what is no grid."""
    if not isinstance(value, list) or not value:
        return _fault(where, "not a grid", type(value).__name__ if value != [] else "an empty list")
    for number, row in enumerate(value):
        if not isinstance(row, list) or not row:
            return _fault(f"{where}[{number}]", "not a row", type(row).__name__ if row != [] else "an empty list")
        if len(row) != len(value[0]):
            return _fault(f"{where}[{number}]", "rows differ in length", f"{len(row)} cells after {len(value[0])}")
        wrong = [cell for cell in row if not _colour(cell)]
        if wrong:
            return _fault(f"{where}[{number}]", "not a colour", _shown(wrong[0]))
    return _fault(where, "not a grid", type(value).__name__)


MOST_SHOWN = 60
"""Characters of a cell that a message shows."""


def _shown(cell: Any) -> str:
    try:
        return repr(cell)[:MOST_SHOWN]
    except ValueError:  # A number of more digits than Python writes.
        return type(cell).__name__


def to_lists(grid: Grid) -> list[list[int]]:
    return [list(row) for row in grid]


def to_text(grid: Grid, style: str) -> str:
    """The text of a grid without a final newline. Styles: `compact` 12/30, `spaced` 1 2/3 0, `json` [[1,2],[3,0]]."""
    return _WRITERS[style](grid)


def from_text(text: str, style: str, where: str = "grid") -> Grid:
    """The exact inverse of `to_text`: any text that it would not have written is refused.

    Raises:
        InputError: the text is no grid in this style.
    """
    grid = from_lists(_READERS[style](text, where), where)
    if to_text(grid, style) != text:
        raise _fault(where, f"not a grid in style {style!r}", repr(text[:60]))
    return grid


def _fault(where: str, what: str, got: str) -> InputError:
    return InputError(InputProblem(where, what, got, "rows of equal length of integers 0 to 9, at least one cell"))


def _colour(cell: Any) -> bool:
    return type(cell) is int and 0 <= cell <= 9


def _cells(row: str) -> list[Any]:
    """Characters to digits; others are kept, to be refused by name."""
    return [int(cell) if cell in DIGITS else cell for cell in row]


def _read_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _fault(where, "not JSON", str(error)) from error


_WRITERS: Mapping[str, Callable[[Grid], str]] = {
    "compact": lambda grid: "\n".join("".join(map(str, row)) for row in grid),
    "spaced": lambda grid: "\n".join(" ".join(map(str, row)) for row in grid),
    "json": lambda grid: json.dumps(grid, separators=(",", ":")),
}
_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "compact": lambda text, where: [_cells(row) for row in text.split("\n")],
    "spaced": lambda text, where: [_cells(row[::2]) for row in text.split("\n")],
    "json": _read_json,
}
STYLES = tuple(_WRITERS)
