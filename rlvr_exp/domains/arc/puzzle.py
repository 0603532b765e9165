"""ARC grids and puzzles as plain frozen data: the text of grids with its exact inverse, and the difficulty of puzzles.

A grid is a tuple of rows of equal length, each a tuple of integers 0 to 9, never empty and of any size.

The difficulty is in [0, 1], larger is harder, a weighted sum of four parts each in [0, 1]:

    0.40 size     log of the largest grid's cells, relative to 900 cells (30 x 30) and capped there
    0.25 change   mean over train pairs of the share of cells that change; 1 if the shapes differ
    0.20 colours  colours beyond the first in all grids, of 9 possible
    0.15 pairs    1 / number of train pairs: fewer pairs leave more rules open
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import ne
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

Grid = tuple[tuple[int, ...], ...]
DIGITS = frozenset("0123456789")
COLOURS = frozenset(range(10))


def from_lists(value: Any, where: str) -> Grid:
    """A grid from lists of lists, as JSON gives them. `where` names the file and key in an error.

    Raises:
        InputError: the value is no rectangle of integers 0 to 9.
    """
    if type(value) is list and set(map(type, value)) == {list}:
        grid = tuple(map(tuple, value))
        cells = list(chain.from_iterable(grid))
        # By type and not by value: true and 1.0 equal 1 in Python but are not colours.
        if len(set(map(len, grid))) == 1 and set(map(type, cells)) == {int} and COLOURS.issuperset(cells):
            return grid
    raise _fault_of(value, where)


def _fault_of(value: Any, where: str) -> InputError:
    if not isinstance(value, list) or not value:
        return _fault(where, "not a grid", type(value).__name__ if value != [] else "an empty list")
    for number, row in enumerate(value):
        place = f"{where}[{number}]"
        if not isinstance(row, list) or not row:
            return _fault(place, "not a row", type(row).__name__ if row != [] else "an empty list")
        if len(row) != len(value[0]):
            return _fault(place, "rows differ in length", f"{len(row)} cells after {len(value[0])}")
        for cell in row:
            if type(cell) is not int or not 0 <= cell <= 9:
                try:
                    shown = repr(cell)[:60]
                except ValueError:  # A number of more digits than Python writes.
                    shown = type(cell).__name__
                return _fault(place, "not a colour", shown)
    return _fault(where, "not a grid", type(value).__name__)


def _fault(where: str, what: str, got: str) -> InputError:
    return InputError(InputProblem(where, what, got, "rows of equal length of integers 0 to 9, at least one cell"))


def grid_of(rows: Sequence[Sequence[int]]) -> Grid:
    return tuple(map(tuple, rows))


def to_lists(grid: Grid) -> list[list[int]]:
    return [list(row) for row in grid]


_WRITERS: Mapping[str, Callable[[Grid], str]] = {
    "compact": lambda grid: "\n".join("".join(map(str, row)) for row in grid),
    "spaced": lambda grid: "\n".join(" ".join(map(str, row)) for row in grid),
    "json": lambda grid: json.dumps(grid, separators=(",", ":")),
}
STYLES = tuple(_WRITERS)


def to_text(grid: Grid, style: str) -> str:
    """The text of a grid without a final newline. Styles: `compact` 12/30, `spaced` 1 2/3 0, `json` [[1,2],[3,0]]."""
    return _WRITERS[style](grid)


def from_text(text: str, style: str, where: str = "grid") -> Grid:
    """The exact inverse of `to_text`. Any other text is refused.

    Raises:
        InputError: the text is no grid in this style.
    """
    if style == "json":
        try:
            cells = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise _fault(where, "not JSON", str(error)) from error
    else:  # Other characters than digits are kept, so that the error names them.
        step = 2 if style == "spaced" else 1
        cells = [[int(cell) if cell in DIGITS else cell for cell in row[::step]] for row in text.split("\n")]
    grid = from_lists(cells, where)
    if to_text(grid, style) != text:
        raise _fault(where, f"not a grid in style {style!r}", repr(text[:60]))
    return grid


ENTRY_POINT = "solve"


@dataclass(frozen=True)
class Pair:
    """One input and its output. The output is `None` if the data set hides the output of a test."""

    input: Grid
    output: Grid | None


@dataclass(frozen=True)
class ArcPuzzle:
    """Every train pair and the inputs of the tests, as a prompt shows them."""

    train: tuple[tuple[Grid, Grid], ...]
    test: tuple[Grid, ...]
    hidden: bool = False
    """Whether a test output is missing: candidates can be judged on the train pairs alone."""


@dataclass(frozen=True)
class ArcRecord:
    """One task as read from a file."""

    id: str
    origin: str
    """The id with folder or file before it, unique within one load."""
    family: str
    split: str
    """The split by the layout: `training`, `evaluation`, a split's name, or nothing."""
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    gold: str | None = None
    source: str = ""
    """The data set of the file that it was read from."""
    names_family: bool = True
    """Whether its file names the family."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self.train + self.test

    @property
    def hidden(self) -> bool:
        return any(pair.output is None for pair in self.test)

    def puzzle(self) -> ArcPuzzle:
        shown = tuple((pair.input, pair.output) for pair in self.train if pair.output is not None)
        return ArcPuzzle(shown, tuple(pair.input for pair in self.test), self.hidden)

    def problem(self) -> PythonProblem:
        """The train pairs then the test pairs as cases. A hidden test gives no case."""
        known = [(pair.input, pair.output) for pair in self.pairs if pair.output is not None]
        return PythonProblem(ENTRY_POINT, tuple(Case((to_lists(given),), to_lists(wanted)) for given, wanted in known))


WEIGHTS = {"size": 0.40, "change": 0.25, "colours": 0.20, "pairs": 0.15}
MOST_CELLS = 900


def parts(puzzle: ArcPuzzle) -> dict[str, float]:
    """The four parts of the score, each in [0, 1]."""
    grids = [grid for pair in puzzle.train for grid in pair] + list(puzzle.test)
    cells = max(len(grid) * len(grid[0]) for grid in grids)
    colours = len(set(chain.from_iterable(row for grid in grids for row in grid)))
    return {
        "size": min(1.0, math.log(cells) / math.log(MOST_CELLS)),
        "change": sum(change(*pair) for pair in puzzle.train) / len(puzzle.train),
        "colours": (colours - 1) / 9,
        "pairs": 1 / len(puzzle.train),
    }


def score(puzzle: ArcPuzzle) -> float:
    return sum(WEIGHTS[name] * value for name, value in parts(puzzle).items())


def change(given: Grid, wanted: Grid) -> float:
    """The share of cells in which two grids differ; 1 if their shapes differ."""
    if (len(given), len(given[0])) != (len(wanted), len(wanted[0])):
        return 1.0
    differ = sum(map(ne, chain.from_iterable(given), chain.from_iterable(wanted)))
    return differ / (len(given) * len(given[0]))
