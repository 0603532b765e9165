"""Charts of the logged metrics: curves over steps, stacked bars and histograms, as inline SVG with HTML labels.

Coordinates of the SVG run from 0 to 1000 on both axes, y downward. The attribute `data-chart` has the chart's data as JSON, for
the readout under the pointer and for tests.

A chart selects metrics by the end of their names, so that `policy/entropy`, `entropy` and `prover/entropy` share a chart. A
metric without a chart of its own is drawn under "More metrics": no logged metric is hidden.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from markupsafe import Markup

from rlvr_exp.core.statistics import mean_interval, t_interval
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.data import RunData, StepCounts
from rlvr_exp.report.rendering import duration, part, words

Values = Sequence[float | None]

MOST_POINTS = 400
"""Most points of a curve; longer curves are shown as means of equal runs of steps, so that the page stays small."""


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


_FLAT = 1e-11
"""A smaller spread counts as none: ticks are distinguished by 12 decimals."""


def value_axis(values: Sequence[float], count: int = 4) -> Axis:
    """An axis with round ends; from 0 unless the values' spread requires less."""
    low, high = min(values), max(values)
    if 0 <= low <= 0.6 * high or low == high > 0:
        low = 0.0
    if high - low < _FLAT:
        low, high = (0.0, 1.0) if abs(high) < _FLAT else (low - abs(low), high + abs(high))
    size = _round_step((high - low) / count)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return Axis(first * size, last * size, tuple(round(i * size, 12) for i in range(first, last + 1)))


def step_axis(steps: Sequence[int], count: int = 5) -> Axis:
    """An axis from the first step to the last, with round integer ticks between."""
    low, high = steps[0], max(steps[-1], steps[0] + 1)
    size = max(1, round(_round_step((high - low) / count)))
    ticks = range(math.ceil(low / size) * size, high + 1, size)
    return Axis(low, high, tuple(ticks))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(nice * power for nice in (1, 2, 5, 10) if nice * power >= rough * (1 - 1e-9))


def running_mean(values: Values) -> list[float | None]:
    """Centred mean over about a twentieth of the curve, nearer points weighing more; None stays None."""
    reach = max(2, len(values) // 40)
    smooth: list[float | None] = []
    for i, value in enumerate(values):
        window = range(max(0, i - reach), min(len(values), i + reach + 1))
        near = [(reach + 1 - abs(k - i), other) for k in window if (other := values[k]) is not None]
        weight = sum(weight for weight, _ in near)
        smooth.append(None if value is None else sum(weight * v for weight, v in near) / weight)
    return smooth


def bins(count: int, most: int) -> list[range]:
    """`count` indices in at most `most` runs of equal length, the last run perhaps shorter."""
    size = max(1, math.ceil(count / most))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def thinned(steps: Sequence[int], columns: Mapping[str, Values]) -> tuple[list[int], dict[str, list[float | None]]]:
    """At most MOST_POINTS points: each bin's middle step and mean."""
    parts = bins(len(steps), MOST_POINTS)
    middles = [steps[part[len(part) // 2]] for part in parts]
    return middles, {name: [_mean(values[i] for i in part) for part in parts] for name, values in columns.items()}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def short(value: float) -> str:
    """At most four significant digits, in a readable form."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


MOST_BARS, MOST_BINS = 60, 20
STEP = "step"
"""The unit of the x axis."""
SMOOTH_FROM = 12
"""Points from which a running mean is drawn over the raw points."""

Band = Sequence[tuple[float, float, float]]
"""(step, low, high) of an interval."""
Legend = Sequence[tuple[str, int, str]]
"""(name, colour, note) of each series. A colour is an index of the palette from 1."""


def line_chart(
    title: str,
    steps: Sequence[int],
    columns: Mapping[str, Values],
    percent: bool = False,
    band: Band = (),
    note: str = "",
    colors: Sequence[int] = (),
) -> Markup:
    """Curves over steps: raw points, and a running mean if there are enough. Empty without a finite number.

    Args:
        band: interval of the first curve.
        colors: by default the palette in its order.
    """
    steps, every = thinned(steps, columns)
    kept = {
        name: color
        for name, color in zip(every, colors or range(1, len(every) + 1), strict=True)
        if _known(every[name])
    }
    columns, palette = {name: every[name] for name in kept}, [*kept.values()]
    known = [value for values in columns.values() for value in _known(values)]
    if not known:
        return Markup()
    ends = [end for _, low, high in band for end in (low, high)]
    x, y = step_axis(steps), value_axis([*([0.0] if percent else []), *known, *ends])
    drawn = [("band c1", _area(band, x, y))] if band else []
    for color, values in zip(palette, columns.values(), strict=True):
        drawn.append((f"points c{color}", _points(steps, values, x, y)))
        smooth = running_mean(values) if len(values) >= SMOOTH_FROM else values
        drawn.append((f"line c{color}", _line(steps, smooth, x, y)))
    places = [x.place(step) for step in steps]
    if len(columns) > 1:
        legend = [(name, color, "") for color, name in zip(palette, columns, strict=True)]
        return _figure(title, drawn, x, y, steps, places, columns, percent, legend=legend, note=note)
    last = f"last {_number(known[-1], percent)}"
    return _figure(title, drawn, x, y, steps, places, columns, percent, last=last, note=note)


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None]


def chart(metrics: Sequence[Row], title: str, lines: Mapping[str, tuple[str, int]], percent: bool) -> Markup:
    """Curves of logged metrics. `lines`: the metric and the colour of each curve."""
    met = {label: line for label, line in lines.items() if any(row.get(line[0]) is not None for row in metrics)}
    rows = [row for row in metrics if any(row.get(name) is not None for name, _ in met.values())]
    columns = {label: [row.get(name) for row in rows] for label, (name, _) in met.items()}
    colors = [color for _, color in met.values()]
    steps = [int(row["step"] or 0) for row in rows]
    return line_chart(title, steps, columns, percent, colors=colors) if rows else Markup()


@dataclass(frozen=True)
class Part:
    """A layer of a stacked chart. `note` is its text in the legend, `color` an index of the palette from 1."""

    name: str
    values: Sequence[float]
    color: int
    note: str


def stacked_chart(title: str, steps: Sequence[int], parts: Sequence[Part], share: bool) -> Markup:
    """Bars over steps, one layer per part, in the given order. `share` draws each bar as shares of its total."""
    runs, parts = bins(len(steps), MOST_BARS), [part for part in parts if any(part.values)]
    sums = {part.name: [sum(part.values[i] for i in run) for run in runs] for part in parts}
    totals = [sum(values[bar] for values in sums.values()) for bar in range(len(runs))]
    if not any(totals):
        return Markup()
    under = [max(totals[bar], 1e-12) if share else len(run) for bar, run in enumerate(runs)]
    heights = {name: [values[bar] / under[bar] for bar in range(len(runs))] for name, values in sums.items()}
    tops = [totals[bar] / under[bar] for bar in range(len(runs))]
    axis = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0)) if share else value_axis([0.0, *tops])
    drawn, floor = [], [0.0] * len(runs)
    for layer in parts:
        drawn.append((f"bar c{layer.color}", _bars(floor, heights[layer.name], axis)))
        floor = [low + value for low, value in zip(floor, heights[layer.name], strict=True)]
    firsts = [steps[run[0]] for run in runs]
    # Bars need not be evenly spaced in steps: ticks are indices, labelled by step.
    every = max(1, -(-len(firsts) // 5))
    x = Axis(0, len(firsts), tuple(i + 0.5 for i in range(0, len(firsts), every)))
    named = lambda tick: str(firsts[int(tick)])  # noqa: E731
    legend = [(layer.name, layer.color, layer.note) for layer in parts]
    return _figure(title, drawn, x, axis, firsts, _centres(len(firsts)), heights, share, named, legend=legend)


def histogram(
    title: str, groups: Mapping[str, Sequence[float]], colors: Sequence[int], counted: str, stacked: bool = False
) -> Markup:
    """The distribution of values in equal bins, with the median of each group. Empty without a value.

    By default bars show the shares of the first group and outlines those of the others. `stacked` shows counts, one layer
    per group.

    Args:
        counted: unit of the x axis.
    """
    known = [value for values in groups.values() for value in values]
    if not known:
        return Markup()
    colored = {name: color for name, color in zip(groups, colors, strict=True) if groups[name]}
    groups, colors = {name: groups[name] for name in colored}, [*colored.values()]
    x = value_axis(known)
    heights: dict[str, list[float]] = {}
    for name, values in groups.items():
        counts = Counter(min(MOST_BINS - 1, int(x.place(value) * MOST_BINS)) for value in values)
        heights[name] = [counts[i] / (1 if stacked else len(values)) for i in range(MOST_BINS)]
    tops = [sum(layers) if stacked else max(layers) for layers in zip(*heights.values(), strict=True)]
    y, floor = value_axis([0.0, *tops]), [0.0] * MOST_BINS
    drawn: list[tuple[str, str]] = []
    for color, values in zip(colors, heights.values(), strict=True):
        bars = stacked or not drawn
        path = _bars(floor, values, y) if bars else _outline(values, y)
        drawn.append((f"{'bar' if bars else 'line'} c{color}", path))
        floor = [low + value * stacked for low, value in zip(floor, values, strict=True)]
    wide = (x.high - x.low) / MOST_BINS
    ranges = [f"{short(x.low + i * wide)} to {short(x.low + (i + 1) * wide)}" for i in range(MOST_BINS)]
    medians = [f"{len(values):,}, median {short(median(values))}" for values in groups.values()]
    legend = list(zip(groups, colors, medians, strict=True))
    places = _centres(MOST_BINS)
    return _figure(title, drawn, x, y, ranges, places, heights, not stacked, short, counted, legend=legend)


def _centres(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _figure(
    title: str, drawn: Sequence[tuple[str, str]], x: Axis, y: Axis, at: Sequence[int | str], places: Sequence[float],
    columns: Mapping[str, Values], percent: bool, named: Callable[[float], str] = str, counted: str = STEP,
    last: str = "", legend: Legend = (), note: str = "",
) -> Markup:  # fmt: skip
    """A chart.

    Args:
        drawn: (CSS class, path) of each layer, from the back to the front.
        at: label of each point in the readout.
        places: place of each point, from 0 to 1.
        named: label of a tick of the x axis.
    """
    data = {
        "x": list(at),
        "counted": counted,
        "at": [round(place, 4) for place in places],
        "low": y.low,
        "high": y.high,
        "percent": percent,
        "series": {
            name: [None if value is None else float(f"{value:.4g}") for value in values]
            for name, values in columns.items()
        },
    }
    return part(
        "figure",
        title=title, last=last, drawn=drawn, counted=counted, legend=legend, note=note, data=json.dumps(data),
        grid=[_down(y, tick) for tick in y.ticks],
        y_labels=[(f"{100 * y.place(tick):.2f}", _number(tick, percent)) for tick in y.ticks],
        x_labels=[(f"{100 * x.place(tick):.2f}", named(tick)) for tick in x.ticks],
    )  # fmt: skip


def _outline(values: Sequence[float], axis: Axis) -> str:
    """A line of steps along the tops of bars."""
    ends = (f"V{_down(axis, value)}H{1000 * (i + 1) / len(values):.1f}" for i, value in enumerate(values))
    return f"M0 {_down(axis, axis.low)}{''.join(ends)}"


def _points(steps: Sequence[int], values: Values, x: Axis, y: Axis) -> str:
    """A dot is a stroke of no length with a round cap, which stays round at any stretching."""
    at = zip(steps, values, strict=True)
    return "".join(f"M{_across(x, step)} {_down(y, value)}h.01" for step, value in at if value is not None)


def _area(band: Band, x: Axis, y: Axis) -> str:
    """Along the high ends and back along the low ends. A single interval is as wide as a stroke."""
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


def _number(value: float, percent: bool) -> str:
    return f"{100 * value:.3g}%" if percent else short(value)


@dataclass(frozen=True)
class Panel:
    """A chart of the metrics whose names end with the pattern."""

    title: str
    pattern: str
    percent: bool = False
    of_groups: Callable[[StepCounts], Sequence[float]] | None = None
    """The same number for each group of a step, for an interval."""
    note: str = ""
    """Shown for reinforcement learning only."""


MAIN = (
    Panel("Reward", r"reward(/mean)?$", of_groups=lambda one: one.group_reward),
    Panel(
        "Success rate in training",
        r"(success(_rate|/rate|/mean)?|solve_rate)$",
        percent=True,
        of_groups=lambda one: one.group_success,
    ),
    Panel("Held-out success during training", r"held_out/pass_at_1$", percent=True),
)
CURVES = (
    Panel("Loss", r"loss(/mean)?$", note="A policy-gradient loss near 0 is normal. It need not fall."),
    Panel("Entropy per token", r"entropy(/mean)?$"),
    Panel("Entropy per token, estimated from samples", r"entropy/estimate$"),
    Panel("KL to the reference", r"kl(/mean)?$"),
    Panel("Completion length in tokens", r"tokens/completion_mean$", of_groups=lambda one: one.group_tokens),
    Panel("Gradient norm", r"grad(ient)?_norm$"),
    Panel("Learning rate", r"(learning_rate|lr)$"),
    Panel(
        "Explained variance of the values",
        r"value/explained_variance$",
        note="1 is exact. At 0 the values explain nothing.",
    ),
    Panel("Difficulty of the sampled tasks", r"tasks/difficulty$"),
    Panel("Difficulty band", r"curriculum/(.+/)?band$"),
    Panel("Success by difficulty band", r"curriculum/(.+/)?success_band_\d+$", percent=True),
    Panel("Curriculum pool", r"curriculum/(.+/)?(pool|resting)$", percent=True),
    Panel("Cumulative prompts or examples by source", r"mix/(?!golds/).+$"),
    Panel("Reference answers imitated in a round, by source", r"mix/golds/.+$"),
    Panel("Groups with mixed rewards", r"curriculum/mixed_groups$", percent=True),
    Panel("Distinct tasks with mixed rewards per step", r"curriculum/effective_prompts$"),
    Panel("Success per round", r"self_play/(refined_)?success$", percent=True),
    Panel("Tasks solved per round", r"self_play/solved_tasks$"),
    Panel("Distinct programs and behaviours per round", r"self_play/(programs|behaviours|correct_programs)$"),
    Panel("Rows per round, by kind", r"self_play/rows_\w+$"),
    Panel("Outputs without a task, by reason", r"self_play/refused_\w+$"),
    Panel("Gradient norm by layer", r"grad_norm/(layer_\d+|embeddings|head|other)$"),
)
BANDED = "Shaded: 95% interval of the mean over tasks."
MOST_BANDS = 40
MACHINE = (
    Panel("Generated tokens per second", r"tokens_per_second$"),
    Panel("Resident memory in MB", r"rss_mb$"),
    Panel("Open files", r"open_files$"),
)
PHASES = ("generate", "verify", "update")
TOTALS = ("time/step", "time/step_core_seconds", "time/total", "time/elapsed")
"""Sums of phases, which would count time twice in a stacked chart."""
RATE = "_per_second"
"""Suffix of rates, which are no times in spite of their prefix."""
MOST_CHARTS = 60
MOST_OPEN = 6

GROUPS = {
    "solved": ("all passed", 3), "mixed": ("some passed", 1), "failed": ("none passed", 2),
    "no_verdict": ("none judged", 9),
}  # fmt: skip

VERDICTS = {
    "passed": 3, "wrong_answer": 1, "verify": 1, "runtime_error": 2, "resolve": 2, "parse": 4, "timeout": 7,
    "truncated": 5, "rejected": 6, "no_verdict": 9,
}  # fmt: skip
"""Colour of each verdict, the same in every report. All others share the colour OTHER."""
OTHER = 8


def main_charts(metrics: Sequence[Row], step_counts: Sequence[StepCounts]) -> Markup:
    """Reward and success."""
    return Markup().join(_chart(metrics, panel, step_counts) for panel in MAIN)


def curve_charts(metrics: Sequence[Row], step_counts: Sequence[StepCounts]) -> Markup:
    """Curves that show the health of a run: loss, entropy, KL, length, gradient norm, learning rate. Those behind the first MOST_OPEN
    are folded."""
    found = [drawn for panel in CURVES if (drawn := _chart(metrics, panel, step_counts))]
    first, rest = (part("charts", charts=Markup().join(some)) for some in (found[:MOST_OPEN], found[MOST_OPEN:]))
    return first + (part("folded", title=f"{len(found) - MOST_OPEN} more curves", body=rest) if rest else Markup())


def machine_charts(metrics: Sequence[Row]) -> Markup:
    """Throughput and memory, as far as they were logged."""
    return Markup().join(_chart(metrics, panel, machine=True) for panel in MACHINE)


def other_charts(metrics: Sequence[Row]) -> tuple[Markup, int]:
    """A small chart for each metric without another chart, and the number of those that do not fit the page."""
    claimed = {name for panel in (*MAIN, *CURVES) for name in _names(metrics, panel.pattern)}
    claimed |= {*_names(metrics, r"held_out/.+/(low|high)$")}  # Ends of an interval.
    claimed |= {name for panel in MACHINE for name in _names(metrics, panel.pattern, machine=True)}
    rest = [name for name in _columns(metrics) if name not in claimed and not name.startswith("groups/")]
    charts = [_lines(metrics, name, [name], False) for name in rest if _phase(name) is None]
    return Markup().join(charts[:MOST_CHARTS]), max(0, len(charts) - MOST_CHARTS)


def stacked_charts(run: RunData) -> Markup:
    """Verdicts, groups and seconds over the steps."""
    verdicts = _verdict_chart(run.step_counts, run.step_counts_every)
    return verdicts + _group_chart(run.metrics) + _phase_chart(run.metrics)


def _phase_chart(metrics: Sequence[Row]) -> Markup:
    """Seconds of a step by phase, stacked."""
    found = {phase: name for name in _columns(metrics) if (phase := _phase(name))}
    order = [phase for phase in PHASES if phase in found] + [phase for phase in found if phase not in PHASES]
    rows = [row for row in metrics if any(row.get(found[phase]) is not None for phase in order)]
    parts = []
    for color, phase in enumerate(order, 1):
        values = [row.get(found[phase]) or 0.0 for row in rows]
        parts.append(Part(phase, values, min(color, OTHER), duration(sum(values))))
    return stacked_chart("Seconds per step", [row["step"] for row in rows], parts, share=False) if rows else Markup()


def _group_chart(metrics: Sequence[Row]) -> Markup:
    """Shares of groups by outcome. A group with a single outcome has no advantage to learn from."""
    rows = [row for row in metrics if any(row.get(f"groups/{kind}") is not None for kind in GROUPS)]
    parts = []
    for kind, (title, color) in GROUPS.items():
        values = [row.get(f"groups/{kind}") or 0.0 for row in rows]
        if any(values):
            parts.append(Part(title, values, color, f"{sum(values) / len(values):.0%}"))
    return stacked_chart("Groups of samples", [row["step"] for row in rows], parts, share=True) if parts else Markup()


def _verdict_chart(step_counts: Sequence[StepCounts], every: int) -> Markup:
    """Share of each verdict among the training completions, over steps. One in `every` files was counted."""
    steps = [one.step for one in step_counts]
    met = {name for one in step_counts for name, count in one.verdicts.items() if count}
    parts = []
    for name in [*VERDICTS, *sorted(met - VERDICTS.keys())]:
        if name in met:
            values = [one.verdicts.get(name, 0) for one in step_counts]
            parts.append(Part(words(name), values, VERDICTS.get(name, OTHER), f"{sum(values):,}"))
    title = "Verdicts on training completions" + (f" (1 step in {every})" if every > 1 else "")
    return stacked_chart(title, steps, parts, share=True) if parts else Markup()


def _chart(
    metrics: Sequence[Row], panel: Panel, step_counts: Sequence[StepCounts] = (), machine: bool = False
) -> Markup:
    names = _names(metrics, panel.pattern, machine)
    title = panel.title if len(names) != 1 or names[0].count("/") < 2 else f"{panel.title} ({names[0]})"
    shade = _band(step_counts, panel.of_groups, panel.percent) if panel.of_groups and len(names) == 1 else []
    note = " ".join(filter(None, (panel.note if step_counts else "", BANDED if shade else "")))
    most = [names[index * (len(names) - 1) // (OTHER - 1)] for index in range(OTHER)] if len(names) > OTHER else names
    return _lines(metrics, title, most, panel.percent, shade, note) if names else Markup()


def _lines(
    metrics: Sequence[Row], title: str, names: Sequence[str], percent: bool, shade: Any = (), note: str = ""
) -> Markup:
    rows = [row for row in metrics if any(row.get(name) is not None for name in names)]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    return line_chart(title, [row["step"] for row in rows], columns, percent, shade, note) if rows else Markup()


def _names(metrics: Sequence[Row], pattern: str, machine: bool = False) -> list[str]:
    wanted = [name for name in _columns(metrics) if re.search(rf"(^|/|_){pattern}", name) and _machine(name) is machine]
    return [name for name in wanted if "guard" not in name.split("/")]  # Counts of what was wrong with a metric.


def _columns(metrics: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in metrics for name in row if name != "step"))


def _machine(name: str) -> bool:
    return "time/" in name or "system/" in name


def _phase(name: str) -> str | None:
    """The phase that a metric times; None for any other metric."""
    times = name.startswith("time/") and name not in TOTALS and not name.endswith(RATE)
    return name.removeprefix("time/") if times else None


def _band(
    step_counts: Sequence[StepCounts], read: Callable[[StepCounts], Sequence[float]], share: bool
) -> list[tuple[float, float, float]]:
    """(step, low, high) of the mean over groups, pooled over equal runs of steps. `share`: the values are in [0, 1]."""
    drawn = []
    for run in bins(len(step_counts), MOST_BANDS):
        values = [value for i in run for value in read(step_counts[i])]
        if len(values) > 1:
            _, low, high = mean_interval(values) if share else t_interval(values)
            drawn.append((fmean((step_counts[run[0]].step, step_counts[run[-1]].step)), low, high))
    return drawn


COMPARED = (
    ("Reward, all runs", "reward/mean", False),
    ("Success rate in training, all runs", "success/mean", True),
    ("Entropy per token, all runs", "entropy", False),
)


def compared_curves(run: RunData) -> Markup:
    """The curves of the runs that +stage=compare read or that a chain ran. Empty for other stages."""
    compared = run.config.get("compare") or {}
    paths = [Path(name) for name in compared.get("runs", ())] or [run.directory / name for name in run.links]
    return curves({name: read_metrics(path) for name, path in zip(run_names(paths), paths, strict=True)})


def curves(metrics: Mapping[str, Sequence[Row]]) -> Markup:
    """A line for each run: the running mean of its metric, on the steps of all runs. Empty without rows."""
    charts = []
    for title, metric, percent in COMPARED:
        columns = {name: {row["step"]: row.get(metric) for row in rows} for name, rows in metrics.items()}
        steps = sorted({int(step or 0) for column in columns.values() for step in column})
        smooth = {name: running_mean([column.get(step) for step in steps]) for name, column in columns.items()}
        charts.append(line_chart(title, steps, smooth, percent) if steps else Markup())
    return part("charts", kind="big", charts=Markup().join(charts))


def run_names(paths: Sequence[Path]) -> list[str]:
    """The name of each folder, or its path if two folders share the name."""
    names = [path.resolve().name for path in paths]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]
