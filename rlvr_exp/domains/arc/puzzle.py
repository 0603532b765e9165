"""ARC puzzles, once loaded: plain frozen data, and how hard a puzzle looks. Other modules read files and word prompts.

The difficulty is in [0, 1], larger is harder, a weighted sum of four parts each in [0, 1]:

    0.40 size     log of the largest grid's cells, relative to 900 cells (30 x 30) and capped there
    0.25 change   mean over train pairs of the share of cells that change; 1 where the shapes differ
    0.20 colours  colours beyond the first in all grids, of 9 possible
    0.15 pairs    1 / number of train pairs: fewer pairs leave more rules open
"""

import math
from dataclasses import dataclass
from itertools import chain
from operator import ne

from rlvr_exp.domains.arc.grid import Grid, to_lists
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

ENTRY_POINT = "solve"


@dataclass(frozen=True)
class Pair:
    """One input and its output; `None` where a data set keeps the output of a test hidden."""

    input: Grid
    output: Grid | None


@dataclass(frozen=True)
class ArcPuzzle:
    """What a prompt shows: every train pair, and the inputs of the tests."""

    train: tuple[tuple[Grid, Grid], ...]
    test: tuple[Grid, ...]
    hidden: bool = False
    """Whether a test output is not given: candidates can be judged on the train pairs alone."""


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
    """The set that it comes from, where it was read from a file."""
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
        """The train pairs then the test pairs as cases; a hidden test gives no case."""
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
    """The share of cells in which two grids differ; 1 where their shapes do."""
    if (len(given), len(given[0])) != (len(wanted), len(wanted[0])):
        return 1.0
    differ = sum(map(ne, chain.from_iterable(given), chain.from_iterable(wanted)))
    return differ / (len(given) * len(given[0]))
