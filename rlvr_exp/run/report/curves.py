"""Which curves the report draws from the logged metrics, in which order, and what time and verdicts went where.

A metric is known by its last words, so that `policy/entropy`, `entropy` and `prover/entropy` share one chart. Whatever
no chart claims is drawn under "More metrics": nothing that was logged is hidden.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.run.report.charts import Part, line_chart, stacked_chart
from rlvr_exp.run.tracking import Row

MAIN = (
    ("Reward", r"reward(/mean)?$", False),
    ("Success rate while training", r"(success(_rate|/rate|/mean)?|solve_rate)$", True),
)
CURVES = (
    ("Loss", r"loss(/mean)?$", False),
    ("Entropy per token", r"entropy(/mean)?$", False),
    ("KL to the reference", r"kl(/mean)?$", False),
    ("Completion length in tokens", r"tokens/completion_mean$", False),
    ("Gradient norm", r"grad(ient)?_norm$", False),
    ("Learning rate", r"(learning_rate|lr)$", False),
)
PHASES = ("generate", "verify", "update")
TOTALS = ("time/step", "time/total", "time/elapsed")
"""Sums of phases: drawing them beside the phases would count time twice."""
MOST_CHARTS = 60

GROUPS = {
    "solved": ("all passed", 3), "mixed": ("some passed: teaches", 1), "failed": ("none passed", 2),
    "no_verdict": ("none judged", 9),
}  # fmt: skip

VERDICTS = {
    "passed": 3, "wrong_answer": 1, "verify": 1, "runtime_error": 2, "resolve": 2, "parse": 4, "timeout": 7,
    "truncated": 5, "rejected": 6, "no_verdict": 9,
}  # fmt: skip
"""Colour of each verdict, the same in every report; those not named share one, as `other`."""
OTHER = 8


def main_charts(metrics: Sequence[Row]) -> str:
    """Reward and success."""
    return "".join(_chart(metrics, panel) for panel in MAIN)


def curve_charts(metrics: Sequence[Row]) -> str:
    """What tells a healthy run from a sick one: loss, entropy, KL, length, gradient norm, learning rate."""
    return "".join(_chart(metrics, panel) for panel in CURVES)


def other_charts(metrics: Sequence[Row]) -> tuple[str, int]:
    """One small chart for each metric that no other chart shows, and how many of those do not fit the page."""
    claimed = {name for panel in (*MAIN, *CURVES) for name in _names(metrics, panel[1])}
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
    """Share of the groups by what they can teach: a group all of one outcome has no advantage to learn from."""
    rows = [row for row in metrics if any(row.get(f"groups/{kind}") is not None for kind in GROUPS)]
    parts = []
    for kind, (title, color) in GROUPS.items():
        values = [row.get(f"groups/{kind}") or 0.0 for row in rows]
        if any(values):
            parts.append(Part(title, values, color, f"{sum(values) / len(values):.0%}"))
    return stacked_chart("Groups of samples", [row["step"] for row in rows], parts, share=True) if parts else ""


def verdict_chart(verdicts: Mapping[int, Mapping[str, int]], every: int) -> str:
    """Share of the training completions that met each verdict, over steps; `every` how many-th file was counted."""
    steps = list(verdicts)
    met = {name for counts in verdicts.values() for name, count in counts.items() if count}
    parts = []
    for name in [*VERDICTS, *sorted(met - VERDICTS.keys())]:
        if name in met:
            values = [verdicts[step].get(name, 0) for step in steps]
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


def _chart(metrics: Sequence[Row], panel: tuple[str, str, bool]) -> str:
    title, pattern, percent = panel
    names = _names(metrics, pattern)
    title = title if len(names) != 1 or names[0].count("/") < 2 else f"{title} ({names[0]})"
    return _lines(metrics, title, names[:OTHER], percent) if names else ""


def _lines(metrics: Sequence[Row], title: str, names: Sequence[str], percent: bool) -> str:
    rows = [row for row in metrics if any(row.get(name) is not None for name in names)]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    return line_chart(title, [row["step"] for row in rows], columns, percent) if rows else ""


def _names(metrics: Sequence[Row], pattern: str) -> list[str]:
    return [name for name in _columns(metrics) if re.search(rf"(^|/|_){pattern}", name) and not _machine(name)]


def _columns(metrics: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in metrics for name in row if name != "step"))


def _machine(name: str) -> bool:
    return "time/" in name or "system/" in name


def _phase(name: str) -> str | None:
    """The phase that a metric times, None for another metric."""
    return name.removeprefix("time/") if name.startswith("time/") and name not in TOTALS else None
