"""A plot of tables of numbers in [0, 1], side by side: a dot for each number, whose area is it."""

import math
from collections.abc import Mapping, Sequence

from rlvr_exp.report.drawing import PALETTE, SOFT, Dot, Drawing, Line, Text

CELL, LEFT, TOP, GAP, BOTTOM = 26, 44, 62, 40, 16
LARGEST = 11.0
"""Pixels of the radius of 1."""
LEAST = 90
"""Pixels of a table at least, for its title."""


def dots(title: str, tables: Mapping[str, Sequence[Sequence[float]]]) -> Drawing:
    """Rows are layers, the first at the top, columns heads; all tables have the same."""
    first = next(iter(tables.values()))
    rows, columns = len(first), len(first[0])
    wide = max(LEAST, columns * CELL)
    shapes: list[Line | Dot | Text] = [Text((8, 14), title)]
    shapes += [Text((LEFT - 10, _at(TOP, row)), str(row), "end", SOFT) for row in range(rows)]
    for place, (name, table) in enumerate(tables.items()):
        left = LEFT + place * (wide + GAP)
        shapes.append(Text((left, TOP - 26), name))
        shapes += [Text((_at(left, column), TOP - 8), str(column), "middle", SOFT) for column in range(columns)]
        shapes += [
            Dot((_at(left, column), _at(TOP, row)), PALETTE[place % len(PALETTE)], LARGEST * math.sqrt(value))
            for row, values in enumerate(table)
            for column, value in enumerate(values)
        ]
    width = LEFT + len(tables) * (wide + GAP)
    return Drawing(title, width, TOP + rows * CELL + BOTTOM, shapes)


def _at(start: float, place: int) -> float:
    return start + CELL * (place + 0.5)
