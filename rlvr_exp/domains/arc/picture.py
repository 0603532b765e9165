"""Puzzles of coloured cells as pictures: an ARC prompt read back into its grids, drawn as inline SVG."""

from collections.abc import Mapping
from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.grid import Grid
from rlvr_exp.domains.arc.prompt import Wording, read

MOST_CELLS = 1200
"""Most cells of a puzzle that are drawn; a larger puzzle stays text, so that the page stays small."""


def puzzle_picture(prompt: str, data: Mapping[str, Any]) -> str:
    """The prompt's grids; '' if the prompt is no puzzle, or the puzzle is too large.

    Args:
        data: the run's `data` node.
    """
    try:
        puzzle = read(prompt, Wording(**(data.get("prompt") or {})))
    except InputError:
        return ""
    shown = [grid for pair in puzzle.train for grid in pair] + list(puzzle.test)
    if sum(len(grid) * len(grid[0]) for grid in shown) > MOST_CELLS:
        return ""
    pairs = [f'<span class="pair">{_grid(given)}<i>&rarr;</i>{_grid(wanted)}</span>' for given, wanted in puzzle.train]
    tests = [f'<span class="pair">{_grid(given)}<i>&rarr; ?</i></span>' for given in puzzle.test]
    return f'<div class="grids">{"".join(pairs + tests)}</div>'


def _grid(grid: Grid) -> str:
    high, wide = len(grid), len(grid[0])
    cell = max(4, min(14, 112 // max(high, wide)))
    rects = "".join(
        f'<path class="g{color}" d="{_cells(grid, color)}"/>'
        for color in sorted({color for row in grid for color in row})
    )
    return f'<svg class="grid" width="{wide * cell}" height="{high * cell}" viewBox="0 0 {wide} {high}">{rects}</svg>'


def _cells(grid: Grid, color: int) -> str:
    """Runs of one colour, a gap of a twelfth of a cell left between cells."""
    return "".join(
        f"M{x} {y}h.92v.92h-.92z" for y, row in enumerate(grid) for x, value in enumerate(row) if value == color
    )
