"""Plots of studies, as drawings: values with their intervals line by line, and curves over a number."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlvr_exp.core.statistics import Estimate
from rlvr_exp.report.drawing import INK, PALETTE, SOFT, Dot, Drawing, Line, Text
from rlvr_exp.report.series import Axis, short, value_axis

WIDTH, ROW, TOP, BOTTOM = 720, 26, 34, 46
LETTER = 7.0
"""Pixels of a letter, for room on the left."""
MOST_LETTERS = 34
HEIGHT, LEFT, RIGHT = 320, 64, 16
MOST_TICKS = 8
"""Numbers that are written along a logarithmic axis."""


def intervals(title: str, rows: Mapping[str, Estimate], unit: str) -> Drawing:
    """A line for each row: its value and the interval around it, with 0 marked."""
    names = {name: name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name in rows}
    left = 24 + LETTER * max(map(len, names.values()))
    axis = value_axis([0.0, *(end for row in rows.values() for end in row)], 6)
    across = lambda value: left + (WIDTH - RIGHT - left) * axis.place(value)  # noqa: E731
    low = TOP + ROW * len(rows)
    shapes: list[Line | Dot | Text] = [Text((8, 14), title)]
    for tick in axis.ticks:
        shapes.append(Line(((across(tick), TOP), (across(tick), low)), SOFT, 1.5 if tick == 0 else 0.3))
        shapes.append(Text((across(tick), low + 14), short(tick), "middle", SOFT))
    shapes.append(Text((across((axis.low + axis.high) / 2), low + 34), unit, "middle", SOFT))
    for place, (name, row) in enumerate(rows.items()):
        y, color = TOP + ROW * (place + 0.5), PALETTE[0] if row.low > 0 else PALETTE[5] if row.high < 0 else SOFT
        shapes.append(Text((left - 12, y), names[name], "end"))
        shapes.append(Line(((across(row.low), y), (across(row.high), y)), color, 2.5))
        shapes.append(Dot((across(row.value), y), color))
    return Drawing(title, WIDTH, low + BOTTOM, shapes)


@dataclass(frozen=True)
class Curve:
    """Points by their numbers, each with an interval where it has one; a line joins them where it should."""

    name: str
    points: Sequence[tuple[float, Estimate]]
    line: bool = True
    dots: bool = True


def curves(title: str, drawn: Sequence[Curve], x_name: str, y_name: str, log: bool = False) -> Drawing:
    """All curves on the same axes; `log`: the numbers are laid out by their logarithm."""
    xs = [x for curve in drawn for x, _ in curve.points]
    x_axis = _log_axis(xs) if log else value_axis(xs, 6)
    y_axis = value_axis([end for curve in drawn for _, value in curve.points for end in value])
    low = HEIGHT - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        place = x_axis.place(math.log10(x) if log else x)
        return LEFT + (WIDTH - RIGHT - LEFT) * place, low - (low - TOP) * y_axis.place(y)

    shapes: list[Line | Dot | Text] = [Text((8, 14), f"{title}: {y_name}")]
    for tick in y_axis.ticks:
        (_, y) = at(xs[0], tick)
        shapes += [Line(((LEFT, y), (WIDTH - RIGHT, y)), SOFT, 0.3), Text((LEFT - 8, y), short(tick), "end", SOFT)]
    for tick in _log_ticks(xs) if log else x_axis.ticks:
        shapes.append(Text((at(tick, y_axis.low)[0], low + 14), short(tick), "middle", SOFT))
    shapes.append(Text(((LEFT + WIDTH - RIGHT) / 2, low + 34), x_name, "middle", SOFT))
    for place, curve in enumerate(drawn):
        color = PALETTE[place % len(PALETTE)]
        if curve.line and len(curve.points) > 1:
            shapes.append(Line(tuple(at(x, value.value) for x, value in curve.points), color))
        for x, value in curve.points if curve.dots else ():
            shapes += [Line((at(x, value.low), at(x, value.high)), color, 1.0), Dot(at(x, value.value), color, 3.0)]
    shapes += _legend([curve.name for curve in drawn])
    return Drawing(title, WIDTH, HEIGHT + (18 if len(drawn) > 1 else 0), shapes)


def _log_axis(values: Iterable[float]) -> Axis:
    logs = [math.log10(value) for value in values]
    low, high = min(logs), max(logs)
    return Axis(low - 0.05, high + 0.05, ())


def _log_ticks(values: Sequence[float]) -> list[float]:
    """The values themselves where there is room for them, else round numbers between them."""
    found = sorted(set(values))
    low, high = math.log10(found[0]), math.log10(found[-1])
    room = (high - low) / (2 * MOST_TICKS)
    if len(found) <= MOST_TICKS and all(math.log10(later / one) >= room for one, later in pairwise(found)):
        return found
    powers = range(math.floor(low), math.ceil(high) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        inside = [tick for tick in ticks if found[0] <= tick <= found[-1]]
        if len(inside) <= MOST_TICKS:
            break
    return inside or [found[0], found[-1]]


def _legend(names: Sequence[str]) -> list[Line | Dot | Text]:
    shapes: list[Line | Dot | Text] = []
    x = float(LEFT)
    for place, name in enumerate(names if len(names) > 1 else ()):
        shapes += [Dot((x, HEIGHT + 6), PALETTE[place % len(PALETTE)]), Text((x + 9, HEIGHT + 6), name, color=INK)]
        x += 28 + LETTER * len(name)
    return shapes
