"""A drawing of positive values over two numbers: a cell each, darker where the value is higher, by its logarithm."""

import math
from collections.abc import Sequence

from rlvr_exp.report.drawing import SOFT, Drawing, Line, Text
from rlvr_exp.report.series import short

WIDTH, LEFT, TOP, BOTTOM = 480, 64, 34, 64
MOST_TICKS = 5
LIGHT, DARK = (240, 244, 250), (23, 50, 100)


def heat_map(
    title: str,
    across: Sequence[float],
    upward: Sequence[float],
    values: Sequence[Sequence[float]],
    x_name: str,
    y_name: str,
) -> Drawing:
    """
    Args:
        across, upward: the numbers of each axis, two or more, rising equally far apart.
        values: above 0, `values[i][j]` at place i across and place j upward.
    """
    cell = (WIDTH - LEFT - 16) / len(across)
    low, logs = TOP + cell * len(upward), [[math.log(value) for value in row] for row in values]
    least, most = (choose(map(choose, logs)) for choose in (min, max))
    shapes: list[Line | Text] = [Text((8, 14), title)]
    for i, row in enumerate(logs):
        for j, value in enumerate(row):
            y, share = low - cell * (j + 0.5), (value - least) / (most - least) if most > least else 0.0
            # Cells overlap by a little, else seams show between them.
            shapes.append(Line(((LEFT + cell * i, y), (LEFT + cell * (i + 1) + 0.5, y)), _color(share), cell + 0.5))
    for place in _ticks(across):
        shapes.append(Text((LEFT + cell * (place + 0.5), low + 14), short(across[place]), "middle", SOFT))
    for place in _ticks(upward):
        shapes.append(Text((LEFT - 8, low - cell * (place + 0.5)), short(upward[place]), "end", SOFT))
    shapes.append(Text(((LEFT + WIDTH) / 2, low + 34), f"{x_name} across, {y_name} upward", "middle", SOFT))
    ends = f"lightest {short(math.exp(least))}, darkest {short(math.exp(most))}"
    shapes.append(Text(((LEFT + WIDTH) / 2, low + 52), ends, "middle", SOFT))
    return Drawing(title, WIDTH, round(low) + BOTTOM, shapes)


def _ticks(at: Sequence[float]) -> range:
    return range(0, len(at), max(1, (len(at) - 1) // (MOST_TICKS - 1)))


def _color(share: float) -> str:
    parts = (round(light + share * (dark - light)) for light, dark in zip(LIGHT, DARK, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)
