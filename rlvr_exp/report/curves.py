"""Curves of the logged metrics: their selection and order on the page, and those of several runs in one chart.

A chart selects metrics by the end of their names, so that `policy/entropy`, `entropy` and `prover/entropy` share a chart. A
metric without a chart of its own is drawn under "More metrics": no logged metric is hidden.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from markupsafe import Markup

from rlvr_exp.core.statistics import mean_interval, t_interval
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.charts import Part, bins, line_chart, running_mean, stacked_chart
from rlvr_exp.report.data import RunData, StepCounts
from rlvr_exp.report.rendering import duration, part, words


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
    Panel("Completion length in tokens", r"tokens/completion_mean$", of_groups=lambda one: one.group_tokens),
    Panel("Gradient norm", r"grad(ient)?_norm$"),
    Panel("Gradient norm by layer", r"grad_norm/(layer_\d+|embeddings|head|other)$"),
    Panel("Learning rate", r"(learning_rate|lr)$"),
)
BANDED = "Shaded: 95% interval of the mean over tasks."
MOST_BANDS = 40
MACHINE = (
    Panel("Generated tokens per second", r"tokens_per_second$"),
    Panel("Resident memory in MB", r"rss_mb$"),
    Panel("Open files", r"open_files$"),
)
PHASES = ("generate", "verify", "update")
TOTALS = ("time/step", "time/total", "time/elapsed")
"""Sums of phases, which would count time twice in a stacked chart."""
RATE = "_per_second"
"""Suffix of rates, which are no times in spite of their prefix."""
MOST_CHARTS = 60

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
    """Curves that show the health of a run: loss, entropy, KL, length, gradient norm, learning rate."""
    return Markup().join(_chart(metrics, panel, step_counts) for panel in CURVES)


def machine_charts(metrics: Sequence[Row]) -> Markup:
    """Throughput and memory, as far as they were logged."""
    return Markup().join(_chart(metrics, panel, machine=True) for panel in MACHINE)


def other_charts(metrics: Sequence[Row]) -> tuple[Markup, int]:
    """A small chart for each metric without another chart, and the number of those that do not fit the page."""
    claimed = {name for panel in (*MAIN, *CURVES) for name in _names(metrics, panel.pattern)}
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
