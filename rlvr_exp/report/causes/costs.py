"""Notes about time and memory. They stop no policy from learning, and are reported in addition to the causes."""

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, linear_regression
from typing import Any

from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.evidence import Evidence, Share, late, middle

GROWING = re.compile(r"(^|/)system/(rss_mb|open_files|disk_used_mb)$")
GROWTH, STEADY, ROWS = 0.2, 0.9, 20
"""Growth over the second half of a run, as a part of its mean; share of tenths that rise; rows that it takes."""
WAITING = 0.5
"""Part of a step spent waiting for verdicts after sampling has ended."""
SHORT = 10
"""Steps below which success cannot be told from chance."""
FEW_TASKS = 8


def _growth(seen: Evidence) -> Sign | None:
    """Resources that grow steadily through the second half, after all one-time growth."""
    found = []
    for name in sorted({name for row in seen.metrics for name in row if GROWING.search(name)}):
        points = seen.column(name)[len(seen.column(name)) // 2 :]
        if len(points) < ROWS // 2 or not _rises(points):
            continue
        slope = linear_regression(*zip(*points, strict=True)).slope
        mean, steps = fmean(value for _, value in points), points[-1][0] - points[0][0]
        if slope * steps > GROWTH * abs(mean) > 0:
            found.append((name, slope, *points[0], *points[-1]))
    if not found:
        return None
    grown = "; ".join(
        f"{name} keeps growing: {low:,.4g} at step {first:,}, {high:,.4g} at step {last:,}"
        for name, _, first, low, last, high in found
    )
    return _note(found[0][2], grown=grown, slopes=", ".join(f"{slope:,.3g}" for _, slope, *_ in found))


def _note(onset: int = 0, **facts: Any) -> Sign:
    return Sign(weight=Weight.NOTE, onset=onset, facts=facts)


def _running_out(seen: Evidence) -> Sign | None:
    """The run's own forecasts, step by step (rlvr_exp.training.step_log)."""
    found = {name: seen.column(name) for row in seen.metrics for name in row if "system/steps_left/" in name}
    if not found:
        return None
    said = "; ".join(
        f"{name.rpartition('/')[2]} was running out: at step {points[-1][0]:,} it would have lasted {points[-1][1]:,.0f} "
        "more steps"
        for name, points in sorted(found.items())
    )
    return _note(min(points[0][0] for points in found.values()), said=said, rows=max(map(len, found.values())))


def _rises(points: Sequence[tuple[int, float]]) -> bool:
    size = max(1, len(points) // 10)
    means = [fmean(value for _, value in points[start : start + size]) for start in range(0, len(points), size)]
    rises = sum(after > before for before, after in pairwise(means))
    return rises >= STEADY * (len(means) - 1)


def _slow_verifier(seen: Evidence) -> Sign | None:
    steps = dict(seen.column("time/step"))
    parts = [(step, value / steps[step]) for step, value in seen.column("time/verify") if steps.get(step)]
    slow = Share(sum(part > WAITING for _, part in parts), len(parts))
    return _note(slow=slow, part=middle(late(parts))) if slow.of >= 3 and slow.value > 0.5 else None


def _short(seen: Evidence) -> Sign | None:
    rose = any(change["low"] > 0 for change in seen.change.values())
    return _note(steps=seen.steps) if seen.trains and 0 < seen.steps < SHORT and not rose else None


def _few_tasks(seen: Evidence) -> Sign | None:
    tasks = {task for one in seen.step_counts for task in one.tasks}
    groups = sum(one.groups for one in seen.step_counts)
    return _note(groups=groups, tasks=len(tasks)) if 0 < len(tasks) < FEW_TASKS and groups > 3 * len(tasks) else None


NOTES = (
    Cause("growth", _growth,
        "{grown}",
        "{slopes} a step over the second half of the run, without an end in sight.",
        "A longer run will end for want of it: checkpoint often, and look for what is kept from step to step."),
    Cause("running_out", _running_out,
        "{said}",
        "Foreseen in {rows:,} rows from the growth of the steps before.",
        "The message of that step in log.txt says what to do."),
    Cause("slow_verifier", _slow_verifier,
        "Slow verifier: in {slow} rows more than half of a step was spent waiting for verdicts",
        "{part:.0%} of a step at last.",
        "More sandbox.workers, lower limits for candidates that hang (sandbox.cpu_s), cache.enabled=true."),
    Cause("short", _short,
        "Too short to tell: {steps} steps",
        "A policy moves little in so few steps, and success in one step varies with its tasks.",
        "Raise algorithm.max_steps."),
    Cause("few_tasks", _few_tasks,
        "Few tasks: {groups:,} groups sampled {tasks} different tasks",
        "Success in training says little about others; see the held-out rates.",
        "More data: data.limit, data.path."),
)  # fmt: skip
