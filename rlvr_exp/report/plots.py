"""Plots as drawings: values with their intervals, curves over a number, heat maps and tables of dots.

A drawing is a list of shapes. It is written as SVG, which pages embed, and as PNG.
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import replacing, write_text
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.report.charts import Axis, short, value_axis

INK, SOFT = "#1a1a19", "#8b8a85"
PALETTE = ("#2a78d6", "#eb6834", "#1baf7a", "#eda100", "#4a3aa7", "#d03b3b", "#e87ba4", "#8f7a5e")
"""The first colours of pages; in a page, ink is the page's own."""
SIZE = 12
"""Pixels of a text."""
SCALE = 2
"""Pixels of a PNG for one of the drawing."""
ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}
Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    color: str = INK
    width: float = 1.5

    def svg(self) -> str:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.points)
        return f'<path d="{path}" fill="none" stroke="{_shown(self.color)}" stroke-width="{self.width:g}"/>'

    def paint(self, canvas: Any) -> None:
        canvas.line([_scaled(point) for point in self.points], self.color, round(self.width * SCALE), joint="curve")


@dataclass(frozen=True)
class Dot:
    at: Point
    color: str = INK
    radius: float = 4.0

    def svg(self) -> str:
        x, y = self.at
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{self.radius:g}" fill="{_shown(self.color)}"/>'

    def paint(self, canvas: Any) -> None:
        (x, y), r = _scaled(self.at), self.radius * SCALE
        canvas.ellipse((x - r, y - r, x + r, y + r), fill=self.color)


@dataclass(frozen=True)
class Text:
    at: Point
    """Where it begins, has its middle or ends; half its height."""
    text: str
    anchor: str = "start"
    color: str = INK

    def svg(self) -> str:
        x, y = self.at
        place = f'x="{x:.1f}" y="{y + SIZE / 3:.1f}" text-anchor="{self.anchor}" fill="{_shown(self.color)}"'
        return f"<text {place}>{escape(self.text)}</text>"

    def paint(self, canvas: Any) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(SIZE * SCALE)
        canvas.text(_scaled(self.at), self.text, self.color, font, ANCHORS[self.anchor])


@dataclass(frozen=True)
class Drawing:
    """Shapes from the back to the front, on an area that is as many pixels wide and high."""

    title: str
    width: int
    height: int
    shapes: Sequence[Line | Dot | Text]

    def svg(self) -> str:
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        body = "".join(shape.svg() for shape in self.shapes)
        font = f'font-family="system-ui, sans-serif" font-size="{SIZE}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self.title)}" {size} {font}>'
        return f"{head}<title>{escape(self.title)}</title>{body}</svg>"

    def png(self) -> bytes:
        from PIL import Image, ImageDraw  # Imported late: most commands write no file.

        image = Image.new("RGB", (self.width * SCALE, self.height * SCALE), "white")
        canvas = ImageDraw.Draw(image)
        for shape in self.shapes:
            shape.paint(canvas)
        written = io.BytesIO()
        image.save(written, "PNG")
        return written.getvalue()

    def write(self, place: Path) -> None:
        """As SVG and as PNG, with these endings behind the name."""
        write_text(place.with_name(f"{place.name}.svg"), self.svg())
        with replacing(place.with_name(f"{place.name}.png")) as temporary:
            temporary.write_bytes(self.png())


def _shown(color: str) -> str:
    return "currentColor" if color == INK else color


def _scaled(point: Point) -> Point:
    return point[0] * SCALE, point[1] * SCALE


WIDTH, ROW, TOP, BOTTOM = 720, 26, 34, 46
LETTER = 7.0
"""Pixels of a letter, for room on the left."""
MOST_LETTERS = 34
HEIGHT, LEFT, RIGHT = 320, 64, 16
MOST_TICKS = 8
"""Numbers that are written along a logarithmic axis."""


def intervals(title: str, rows: Mapping[str, Estimate], unit: str, percent: bool = False) -> Drawing:
    """A line for each row: its value and the interval around it, with 0 marked. `percent`: the values are shares."""
    names = {name: name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name in rows}
    left = 24 + LETTER * max(map(len, names.values()))
    axis = value_axis([0.0, *(end for row in rows.values() for end in row)], 6)
    across = lambda value: left + (WIDTH - RIGHT - left) * axis.place(value)  # noqa: E731
    low = TOP + ROW * len(rows)
    shapes: list[Line | Dot | Text] = [Text((8, 14), title)]
    for tick in axis.ticks:
        shapes.append(Line(((across(tick), TOP), (across(tick), low)), SOFT, 1.5 if tick == 0 else 0.3))
        shapes.append(Text((across(tick), low + 14), _label(tick, percent), "middle", SOFT))
    shapes.append(Text((across((axis.low + axis.high) / 2), low + 34), unit, "middle", SOFT))
    for place, (name, row) in enumerate(rows.items()):
        y, color = TOP + ROW * (place + 0.5), PALETTE[0] if row.low > 0 else PALETTE[5] if row.high < 0 else SOFT
        shapes.append(Text((left - 12, y), names[name], "end"))
        shapes.append(Line(((across(row.low), y), (across(row.high), y)), color, 2.5))
        shapes.append(Dot((across(row.value), y), color))
    return Drawing(title, WIDTH, low + BOTTOM, shapes)


@dataclass(frozen=True)
class Curve:
    """Points by their numbers, each with an interval if it has one, and joined by a line if `line`."""

    name: str
    points: Sequence[tuple[float, Estimate]]
    line: bool = True
    dots: bool = True


def curves(
    title: str, drawn: Sequence[Curve], x_name: str, y_name: str, log: bool = False, percent: bool = False
) -> Drawing:
    """All curves on the same axes; `log`: the numbers are laid out by their logarithm; `percent`: the values are shares."""
    drawn = [curve for curve in drawn if curve.points]
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
        shapes += [
            Line(((LEFT, y), (WIDTH - RIGHT, y)), SOFT, 0.3),
            Text((LEFT - 8, y), _label(tick, percent), "end", SOFT),
        ]
    for tick in _log_ticks(xs) if log else x_axis.ticks:
        shapes.append(Text((at(tick, y_axis.low)[0], low + 14), short(tick), "middle", SOFT))
    shapes.append(Text(((LEFT + WIDTH - RIGHT) / 2, low + 34), x_name, "middle", SOFT))
    for place, curve in enumerate(drawn):
        color = PALETTE[place % len(PALETTE)]
        if curve.line and len(curve.points) > 1:
            shapes.append(Line(tuple(at(x, value.value) for x, value in curve.points), color))
        for x, value in curve.points if curve.dots else ():
            shapes += [Line((at(x, value.low), at(x, value.high)), color, 1.0), Dot(at(x, value.value), color, 3.0)]
    legend, rows = _legend([curve.name for curve in drawn])
    return Drawing(title, WIDTH, HEIGHT + 18 * rows, [*shapes, *legend])


def _label(tick: float, percent: bool) -> str:
    return f"{100 * tick:.3g}%" if percent else short(tick)


def _log_axis(values: Iterable[float]) -> Axis:
    logs = [math.log10(value) for value in values]
    low, high = min(logs), max(logs)
    return Axis(low - 0.05, high + 0.05, ())


def _log_ticks(values: Sequence[float]) -> list[float]:
    """The values themselves if they have room, else round numbers between them."""
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


def _legend(names: Sequence[str]) -> tuple[list[Line | Dot | Text], int]:
    """The names below the axes, and the number of their rows; none for a single curve."""
    shapes: list[Line | Dot | Text] = []
    x, row = float(LEFT), 0
    for place, name in enumerate(names if len(names) > 1 else ()):
        wide = 28 + LETTER * len(name)
        if x > LEFT and x + wide > WIDTH:
            x, row = float(LEFT), row + 1
        y = HEIGHT + 6 + 18 * row
        shapes += [Dot((x, y), PALETTE[place % len(PALETTE)]), Text((x + 9, y), name, color=INK)]
        x += wide
    return shapes, row + 1 if shapes else 0


MAP_WIDTH, MAP_BOTTOM, MAP_TICKS = 480, 64, 5
LIGHT, DARK = (240, 244, 250), (23, 50, 100)


def heat_map(
    title: str,
    across: Sequence[float],
    upward: Sequence[float],
    values: Sequence[Sequence[float]],
    x_name: str,
    y_name: str,
) -> Drawing:
    """Positive values over two numbers: a cell each, darker for a higher logarithm of the value.

    Args:
        across, upward: the numbers of each axis, two or more, rising equally far apart.
        values: above 0, `values[i][j]` at place i across and place j upward.
    """
    cell = (MAP_WIDTH - LEFT - 16) / len(across)
    low, logs = TOP + cell * len(upward), [[math.log(value) for value in row] for row in values]
    least, most = (choose(map(choose, logs)) for choose in (min, max))
    shapes: list[Line | Text] = [Text((8, 14), title)]
    for i, row in enumerate(logs):
        for j, value in enumerate(row):
            y, share = low - cell * (j + 0.5), (value - least) / (most - least) if most > least else 0.0
            # Cells overlap by a little, else seams show between them.
            shapes.append(Line(((LEFT + cell * i, y), (LEFT + cell * (i + 1) + 0.5, y)), _shade(share), cell + 0.5))
    for place in _map_ticks(across):
        shapes.append(Text((LEFT + cell * (place + 0.5), low + 14), short(across[place]), "middle", SOFT))
    for place in _map_ticks(upward):
        shapes.append(Text((LEFT - 8, low - cell * (place + 0.5)), short(upward[place]), "end", SOFT))
    shapes.append(Text(((LEFT + MAP_WIDTH) / 2, low + 34), f"{x_name} across, {y_name} upward", "middle", SOFT))
    ends = f"lightest {short(math.exp(least))}, darkest {short(math.exp(most))}"
    shapes.append(Text(((LEFT + MAP_WIDTH) / 2, low + 52), ends, "middle", SOFT))
    return Drawing(title, MAP_WIDTH, round(low) + MAP_BOTTOM, shapes)


def _map_ticks(at: Sequence[float]) -> range:
    return range(0, len(at), max(1, (len(at) - 1) // (MAP_TICKS - 1)))


def _shade(share: float) -> str:
    parts = (round(light + share * (dark - light)) for light, dark in zip(LIGHT, DARK, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


CELL, DOTS_LEFT, DOTS_TOP, GAP, DOTS_BOTTOM = 26, 44, 62, 40, 16
LARGEST = 11.0
"""Pixels of the radius of 1."""
LEAST_WIDTH = 90
"""Pixels of a table at least, for its title."""


def dots(title: str, tables: Mapping[str, Sequence[Sequence[float]]]) -> Drawing:
    """Tables of numbers in [0, 1], side by side: a dot for each number, whose area is it. Rows are layers, the first at the
    top, columns heads; all tables have the same."""
    first = next(iter(tables.values()))
    rows, columns = len(first), len(first[0])
    wide = max(LEAST_WIDTH, columns * CELL)
    shapes: list[Line | Dot | Text] = [Text((8, 14), title)]
    shapes += [Text((DOTS_LEFT - 10, _middle(DOTS_TOP, row)), str(row), "end", SOFT) for row in range(rows)]
    for place, (name, table) in enumerate(tables.items()):
        left = DOTS_LEFT + place * (wide + GAP)
        shapes.append(Text((left, DOTS_TOP - 26), name))
        shapes += [
            Text((_middle(left, column), DOTS_TOP - 8), str(column), "middle", SOFT) for column in range(columns)
        ]
        shapes += [
            Dot(
                (_middle(left, column), _middle(DOTS_TOP, row)),
                PALETTE[place % len(PALETTE)],
                LARGEST * math.sqrt(value),
            )
            for row, values in enumerate(table)
            for column, value in enumerate(values)
        ]
    width = DOTS_LEFT + len(tables) * (wide + GAP)
    return Drawing(title, width, DOTS_TOP + rows * CELL + DOTS_BOTTOM, shapes)


def _middle(start: float, place: int) -> float:
    return start + CELL * (place + 0.5)
