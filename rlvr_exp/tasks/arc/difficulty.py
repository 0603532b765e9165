"""How hard an ARC task looks, from its grids alone.

The score is in [0, 1], larger is harder, a weighted sum of four parts each in [0, 1]:

    0.40 size     log of the largest grid's cells, relative to 900 cells (30 x 30) and capped there
    0.25 change   mean over train pairs of the share of cells that change; 1 where the shapes differ
    0.20 colours  colours beyond the first in all grids, of 9 possible
    0.15 pairs    1 / number of train pairs: fewer pairs leave more rules open
"""

import math
from itertools import chain
from operator import ne

from rlvr_exp.tasks.arc.grid import Grid
from rlvr_exp.tasks.arc.puzzle import ArcPuzzle

WEIGHTS = {"size": 0.40, "change": 0.25, "colours": 0.20, "pairs": 0.15}
LARGEST = 900


def parts(puzzle: ArcPuzzle) -> dict[str, float]:
    """The four parts of the score, each in [0, 1]."""
    grids = [grid for pair in puzzle.train for grid in pair] + list(puzzle.test)
    cells = max(len(grid) * len(grid[0]) for grid in grids)
    colours = len(set(chain.from_iterable(row for grid in grids for row in grid)))
    return {
        "size": min(1.0, math.log(cells) / math.log(LARGEST)),
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
