"""Selects and orders the report's curves of logged metrics, and charts time and verdicts.

A metric is identified by the end of its name, so that `policy/entropy`, `entropy` and `prover/entropy` share a chart. A
metric without a chart of its own is drawn under "More metrics": no logged metric is hidden.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.records.tracking import Row
from rlvr_exp.report.charts import Part, line_chart, stacked_chart
from rlvr_exp.report.series import band
from rlvr_exp.report.step_counts import StepCounts


@dataclass(frozen=True)
class Panel:
    """A chart: the metrics whose names end as in the pattern."""

    title: str
    pattern: str
    percent: bool = False
    of_groups: Callable[[StepCounts], Sequence[float]] | None = None
    """The same number of each group of a step, for an interval."""
    note: str = ""
    """Shown for reinforcement learning only."""


MAIN = (
    Panel("Reward", r"reward(/mean)?$", of_groups=lambda one: one.group_reward),
    Panel(
        "Success rate while training",
        r"(success(_rate|/rate|/mean)?|solve_rate)$",
        percent=True,
        of_groups=lambda one: one.group_success,
    ),
    Panel("Success on held-out tasks while training", r"held_out/pass_at_1$", percent=True),
)
CURVES = (
    Panel("Loss", r"loss(/mean)?$", note="Of a policy gradient: near 0 is normal, and it need not fall."),
    Panel("Entropy per token", r"entropy(/mean)?$"),
    Panel("Entropy per token, estimated from the samples", r"entropy/estimate$"),
    Panel("KL to the reference", r"kl(/mean)?$"),
    Panel(
        "Accuracy of the values", r"value/explained_variance$", note="Explained variance: 1 is exact, 0 says nothing."
    ),
    Panel("Difficulty of the sampled tasks", r"tasks/difficulty$"),
    Panel("Difficulty band", r"curriculum/(.+/)?band$"),
    Panel("Success by difficulty band", r"curriculum/(.+/)?success_band_\d+$", percent=True),
    Panel("Tasks in the curriculum's pool", r"curriculum/(.+/)?(pool|resting)$", percent=True),
    Panel("Prompts or examples so far, by source", r"mix/(?!golds/).+$"),
    Panel("Golds imitated so far in a round, by source", r"mix/golds/.+$"),
    Panel("Groups with mixed rewards", r"curriculum/mixed_groups$", percent=True),
    Panel("Different tasks with mixed rewards in a step", r"curriculum/effective_prompts$"),
    Panel("Success of a round's answers", r"self_play/(refined_)?success$", percent=True),
    Panel("Tasks solved in a round", r"self_play/solved_tasks$"),
    Panel("Different programs and behaviours of a round", r"self_play/(programs|behaviours|correct_programs)$"),
    Panel("Rows made in a round, by kind", r"self_play/rows_\w+$"),
    Panel("Outputs that made no task, by reason", r"self_play/refused_\w+$"),
    Panel("Completion length in tokens", r"tokens/completion_mean$", of_groups=lambda one: one.group_tokens),
    Panel("Gradient norm", r"grad(ient)?_norm$"),
    Panel("Gradient norm by layer", r"grad_norm/(layer_\d+|embeddings|head|other)$"),
    Panel("Learning rate", r"(learning_rate|lr)$"),
)
BANDED = "Shaded: 95% interval of the mean over tasks."
MACHINE = (
    Panel("Tokens generated per second", r"tokens_per_second$"),
    Panel("Resident memory in MB", r"rss_mb$"),
    Panel("Open files", r"open_files$"),
)
PHASES = ("generate", "verify", "update")
TOTALS = ("time/step", "time/total", "time/elapsed")
"""Sums of phases: drawing them with the phases would count time twice."""
RATE = "_per_second"
"""Suffix of rates, which are no times though they are named so for their dependence on the machine."""
MOST_CHARTS = 60

GROUPS = {
    "solved": ("all passed", 3), "mixed": ("some passed: teaches", 1), "failed": ("none passed", 2),
    "no_verdict": ("none judged", 9),
}  # fmt: skip

VERDICTS = {
    "passed": 3, "wrong_answer": 1, "verify": 1, "runtime_error": 2, "resolve": 2, "parse": 4, "timeout": 7,
    "truncated": 5, "rejected": 6, "no_verdict": 9,
}  # fmt: skip
"""Colour of each verdict, the same in every report; all others share a colour, as `other`."""
OTHER = 8


def main_charts(metrics: Sequence[Row], step_counts: Sequence[StepCounts]) -> str:
    """Reward and success."""
    return "".join(_chart(metrics, panel, step_counts) for panel in MAIN)


def curve_charts(metrics: Sequence[Row], step_counts: Sequence[StepCounts]) -> str:
    """Curves that show the health of a run: loss, entropy, KL, length, gradient norm, learning rate."""
    return "".join(_chart(metrics, panel, step_counts) for panel in CURVES)


def machine_charts(metrics: Sequence[Row]) -> str:
    """Throughput and memory, as far as they were logged."""
    return "".join(_chart(metrics, panel, machine=True) for panel in MACHINE)


def other_charts(metrics: Sequence[Row]) -> tuple[str, int]:
    """A small chart for each metric without another chart, and the number of those that do not fit the page."""
    claimed = {name for panel in (*MAIN, *CURVES) for name in _names(metrics, panel.pattern)}
    claimed |= {name for panel in MACHINE for name in _names(metrics, panel.pattern, machine=True)}
    rest = [
        name
        for name in _columns(metrics)
        if name not in claimed and _phase(name) is None and not name.startswith("groups/")
    ]
    charts = [_lines(metrics, name, [name], False) for name in rest]
    return "".join(charts[:MOST_CHARTS]), max(0, len(charts) - MOST_CHARTS)


def phase_chart(metrics: Sequence[Row]) -> str:
    """Seconds of a step by phase, stacked."""
    found = {phase: name for name in _columns(metrics) if (phase := _phase(name))}
    order = [phase for phase in PHASES if phase in found] + [phase for phase in found if phase not in PHASES]
    rows = [row for row in metrics if any(row.get(found[phase]) is not None for phase in order)]
    parts = []
    for color, phase in enumerate(order, 1):
        values = [row.get(found[phase]) or 0.0 for row in rows]
        parts.append(Part(phase, values, min(color, OTHER), duration(sum(values))))
    return stacked_chart("Seconds per step", [row["step"] for row in rows], parts, share=False) if rows else ""


def group_chart(metrics: Sequence[Row]) -> str:
    """Share of the groups by what they can teach: a group with a single outcome has no advantage to learn from."""
    rows = [row for row in metrics if any(row.get(f"groups/{kind}") is not None for kind in GROUPS)]
    parts = []
    for kind, (title, color) in GROUPS.items():
        values = [row.get(f"groups/{kind}") or 0.0 for row in rows]
        if any(values):
            parts.append(Part(title, values, color, f"{sum(values) / len(values):.0%}"))
    return stacked_chart("Groups of samples", [row["step"] for row in rows], parts, share=True) if parts else ""


def verdict_chart(step_counts: Sequence[StepCounts], every: int) -> str:
    """Share of each verdict among the training completions, over steps; `every`: one in how many files was counted."""
    steps = [one.step for one in step_counts]
    met = {name for one in step_counts for name, count in one.verdicts.items() if count}
    parts = []
    for name in [*VERDICTS, *sorted(met - VERDICTS.keys())]:
        if name in met:
            values = [one.verdicts.get(name, 0) for one in step_counts]
            parts.append(Part(words(name), values, VERDICTS.get(name, OTHER), f"{sum(values):,}"))
    title = "Verdicts on training completions" + (f" (1 step in {every})" if every > 1 else "")
    return stacked_chart(title, steps, parts, share=True) if parts else ""


def words(name: str) -> str:
    return name.replace("_", " ")


def duration(seconds: float) -> str:
    """`8.2 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _chart(metrics: Sequence[Row], panel: Panel, step_counts: Sequence[StepCounts] = (), machine: bool = False) -> str:
    names = _names(metrics, panel.pattern, machine)
    title = panel.title if len(names) != 1 or names[0].count("/") < 2 else f"{panel.title} ({names[0]})"
    shade = band(step_counts, panel.of_groups, panel.percent) if panel.of_groups and len(names) == 1 else []
    note = " ".join(filter(None, (panel.note if step_counts else "", BANDED if shade else "")))
    most = [names[index * (len(names) - 1) // (OTHER - 1)] for index in range(OTHER)] if len(names) > OTHER else names
    return _lines(metrics, title, most, panel.percent, shade, note) if names else ""


def _lines(
    metrics: Sequence[Row], title: str, names: Sequence[str], percent: bool, shade: Any = (), note: str = ""
) -> str:
    rows = [row for row in metrics if any(row.get(name) is not None for name in names)]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    return line_chart(title, [row["step"] for row in rows], columns, percent, shade, note) if rows else ""


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
