"""Charts as inline SVG that stretches to any width while its text does not: labels are HTML next to the drawing.

A drawing's coordinates run from 0 to 1000 on both axes, y downward. The data of a chart is in its `data-chart`
attribute as JSON, for the readout under the pointer and for tests.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from rlvr_exp.report.series import Axis, Values, bins, running_mean, short, step_axis, thinned, value_axis

MOST_BARS, MOST_BINS = 60, 20
STEP = "step"
"""What an x axis counts."""
SMOOTH_FROM = 12
"""Points from which a running mean is drawn over the raw ones."""


Band = Sequence[tuple[float, float, float]]
"""(step, low, high) of an interval."""


def line_chart(
    title: str,
    steps: Sequence[int],
    columns: Mapping[str, Values],
    percent: bool = False,
    band: Band = (),
    note: str = "",
    colors: Sequence[int] = (),
) -> str:
    """Curves over steps: raw points, and a running mean once there are enough; `band` is the first curve's interval,
    `colors` of the palette, by default in its order. '' without a finite number."""
    steps, columns = thinned(steps, columns)
    known = [value for values in columns.values() for value in values if value is not None]
    if not known:
        return ""
    ends = [end for _, low, high in band for end in (low, high)]
    x, y = step_axis(steps), value_axis([*([0.0] if percent else []), *known, *ends])
    drawn = [f'<path class="band c1" d="{_area(band, x, y)}"/>'] if band else []
    palette = colors or range(1, len(columns) + 1)
    for color, values in zip(palette, columns.values(), strict=True):
        smooth = len(values) >= SMOOTH_FROM
        drawn.append(f'<path class="points c{color}" d="{_points(steps, values, x, y)}"/>')
        drawn.append(
            f'<path class="line c{color}" d="{_line(steps, running_mean(values) if smooth else values, x, y)}"/>'
        )
    last = _last(columns, percent) if len(columns) == 1 else ""
    legend = (
        _legend((name, color, "") for color, name in zip(palette, columns, strict=True)) if len(columns) > 1 else ""
    )
    places = [x.place(step) for step in steps]
    return _figure(title, last, _plot(drawn, x, y, steps, places, columns, percent), legend, note)


@dataclass(frozen=True)
class Part:
    """A layer of a stacked chart. `note` is its text in the legend, `color` an index of the palette from 1."""

    name: str
    values: Sequence[float]
    color: int
    note: str


def stacked_chart(title: str, steps: Sequence[int], parts: Sequence[Part], share: bool) -> str:
    """Bars over steps, one layer per part, in the given order; `share` draws each bar as shares of its total."""
    runs = bins(len(steps), MOST_BARS)
    sums = {part.name: [sum(part.values[i] for i in run) for run in runs] for part in parts}
    totals = [sum(values[bar] for values in sums.values()) for bar in range(len(runs))]
    under = [max(totals[bar], 1e-12) if share else len(run) for bar, run in enumerate(runs)]
    heights = {name: [values[bar] / under[bar] for bar in range(len(runs))] for name, values in sums.items()}
    if not any(totals):
        return ""
    tops = [totals[bar] / under[bar] for bar in range(len(runs))]
    axis = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0)) if share else value_axis([0.0, *tops])
    drawn, floor = [], [0.0] * len(runs)
    for part in parts:
        drawn.append(f'<path class="bar c{part.color}" d="{_bars(floor, heights[part.name], axis)}"/>')
        floor = [low + value for low, value in zip(floor, heights[part.name], strict=True)]
    firsts = [steps[run[0]] for run in runs]
    named = lambda tick: str(firsts[int(tick)])  # noqa: E731
    plot = _plot(drawn, _bar_axis(firsts), axis, firsts, _centres(len(firsts)), heights, share, named)
    return _figure(title, "", plot, _legend((part.name, part.color, part.note) for part in parts))


def histogram(
    title: str, groups: Mapping[str, Sequence[float]], colors: Sequence[int], counted: str, stacked: bool = False
) -> str:
    """How values are distributed, in equal bins, with the median of each group: shares of each group, the first as bars and
    others as outlines; `stacked`: counts, one layer per group. '' without a value.

    Args:
        counted: what the x axis counts.
    """
    known = [value for values in groups.values() for value in values]
    if not known:
        return ""
    x = value_axis(known)
    heights: dict[str, list[float]] = {}
    for name, values in groups.items():
        counts = Counter(min(MOST_BINS - 1, int(x.place(value) * MOST_BINS)) for value in values)
        heights[name] = [counts[i] / (1 if stacked else max(1, len(values))) for i in range(MOST_BINS)]
    tops = [sum(layers) if stacked else max(layers) for layers in zip(*heights.values(), strict=True)]
    y, floor = value_axis([0.0, *tops]), [0.0] * MOST_BINS
    drawn: list[str] = []
    for color, values in zip(colors, heights.values(), strict=True):
        bars = stacked or not drawn
        path = _bars(floor, values, y) if bars else _outline(values, y)
        drawn.append(f'<path class="{"bar" if bars else "line"} c{color}" d="{path}"/>')
        floor = [low + value * stacked for low, value in zip(floor, values, strict=True)]
    wide = (x.high - x.low) / MOST_BINS
    ranges = [f"{short(x.low + i * wide)} to {short(x.low + (i + 1) * wide)}" for i in range(MOST_BINS)]
    plot = _plot(drawn, x, y, ranges, _centres(MOST_BINS), heights, not stacked, short, counted)
    medians = (f"{len(values):,}, median {short(median(values))}" if values else "none" for values in groups.values())
    return _figure(title, "", plot, _legend(zip(groups, colors, medians, strict=True)))


def _centres(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _outline(values: Sequence[float], axis: Axis) -> str:
    """A line of steps along the tops of bars."""
    ends = (f"V{_down(axis, value)}H{1000 * (i + 1) / len(values):.1f}" for i, value in enumerate(values))
    return f"M0 {_down(axis, axis.low)}{''.join(ends)}"


def _bar_axis(firsts: Sequence[int]) -> Axis:
    """Bar centres at (i + 1/2) / n, which need not be evenly spaced in steps: ticks are indices, labelled by step."""
    every = max(1, -(-len(firsts) // 5))
    return Axis(0, len(firsts), tuple(i + 0.5 for i in range(0, len(firsts), every)))


def _plot(
    drawn: Sequence[str], x: Axis, y: Axis, at: Sequence[int | str], places: Sequence[float],
    columns: Mapping[str, Values], percent: bool, named: Callable[[float], str] = str, counted: str = STEP,
) -> str:  # fmt: skip
    """`at`: what the readout calls each point, at its place from 0 to 1; `named`: the label of a tick of the x axis."""
    grid = "".join(f'<path class="grid" d="M0 {_down(y, tick)}H1000"/>' for tick in y.ticks)
    data = {
        "x": list(at),
        "counted": counted,
        "at": [round(place, 4) for place in places],
        "low": y.low,
        "high": y.high,
        "percent": percent,
        "series": {name: [_digits(value) for value in values] for name, values in columns.items()},
    }
    labels = [f'<span class="y" style="bottom:{100 * y.place(t):.2f}%">{_number(t, percent)}</span>' for t in y.ticks]
    for tick in x.ticks:
        labels.append(f'<span class="x" style="left:{100 * x.place(tick):.2f}%">{named(tick)}</span>')
    return (
        f'<div class="plot" data-chart="{escape(json.dumps(data))}"><svg viewBox="0 0 1000 1000" '
        f'preserveAspectRatio="none" aria-hidden="true">{grid}{"".join(drawn)}</svg>{"".join(labels)}'
        f'<span class="counted">{counted}</span><i class="hair"></i><output></output></div>'
    )


def _figure(title: str, last: str, plot: str, legend: str, note: str = "") -> str:
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<figure><figcaption>{escape(title)}<b>{escape(last)}</b></figcaption>{plot}{legend}{below}</figure>"


def _legend(items: Iterable[tuple[str, int, str]]) -> str:
    drawn = (f'<li><i class="c{color}"></i>{escape(name)} <b>{escape(note)}</b></li>' for name, color, note in items)
    return f'<ul class="legend">{"".join(drawn)}</ul>'


def _points(steps: Sequence[int], values: Values, x: Axis, y: Axis) -> str:
    """A dot is a stroke of no length with a round cap, which stays round at any stretching."""
    at = zip(steps, values, strict=True)
    return "".join(f"M{_across(x, step)} {_down(y, value)}h.01" for step, value in at if value is not None)


def _area(band: Band, x: Axis, y: Axis) -> str:
    """Along the high ends and back along the low ends; a single interval is as wide as a stroke."""
    inside = [(min(max(step, x.low), x.high), low, high) for step, low, high in band]
    there = [f"{_across(x, step)} {_down(y, high)}" for step, _, high in inside]
    back = [f"{_across(x, step)} {_down(y, low)}" for step, low, _ in reversed(inside)]
    return f"M{'L'.join([*there, *back])}z"


def _line(steps: Sequence[int], values: Values, x: Axis, y: Axis) -> str:
    known = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    return "M" + "L".join(f"{_across(x, step)} {_down(y, value)}" for step, value in known) if known else ""


def _bars(floor: Sequence[float], values: Sequence[float], axis: Axis) -> str:
    wide = 1000 / len(values)
    path = []
    for i, (low, value) in enumerate(zip(floor, values, strict=True)):
        if value > 0:
            left, top, bottom = (i + 0.08) * wide, _down(axis, low + value), _down(axis, low)
            path.append(f"M{left:.1f} {bottom}V{top}h{0.84 * wide:.1f}V{bottom}z")
    return "".join(path)


def _across(axis: Axis, value: float) -> str:
    return f"{1000 * axis.place(value):.1f}"


def _down(axis: Axis, value: float) -> str:
    return f"{1000 - 1000 * axis.place(value):.1f}"


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _number(value: float, percent: bool) -> str:
    return f"{100 * value:.3g}%" if percent else short(value)


def _last(columns: Mapping[str, Values], percent: bool) -> str:
    (values,) = columns.values()
    return "last " + _number(next(value for value in reversed(values) if value is not None), percent)
