"""Findings about time and memory. They stop no policy from learning, and are reported in addition to the causes."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, linear_regression

from rlvr_exp.report.evidence import Evidence, Share, late, middle
from rlvr_exp.report.finding import Finding, Weight

GROWING = re.compile(r"(^|/)system/(rss_mb|open_files|disk_used_mb)$")
GROWTH, STEADY, ROWS = 0.2, 0.9, 20
"""Growth over the second half of a run, as a part of its mean; share of tenths that rise; rows that it takes."""
WAITING = 0.5
"""Part of a step spent waiting for verdicts after sampling has ended."""
SHORT = 10
"""Steps below which success cannot be told from chance."""
FEW_TASKS = 8


def costs(seen: Evidence) -> Iterator[Finding]:
    yield from _growth(seen)
    yield from _running_out(seen)
    yield from _slow_verifier(seen)
    yield from _short(seen)
    yield from _few_tasks(seen)


def _growth(seen: Evidence) -> Iterator[Finding]:
    """A resource that grows steadily through the second half, after all one-time growth."""
    names = {name for row in seen.metrics for name in row if GROWING.search(name)}
    for name in sorted(names):
        points = seen.column(name)[len(seen.column(name)) // 2 :]
        if len(points) < ROWS // 2 or not _rises(points):
            continue
        slope = linear_regression(*zip(*points, strict=True)).slope
        mean, steps = fmean(value for _, value in points), points[-1][0] - points[0][0]
        if slope * steps > GROWTH * abs(mean) > 0:
            yield Finding(
                "growth",
                f"{name} keeps growing: {points[0][1]:,.4g} at step {points[0][0]:,}, {points[-1][1]:,.4g} at step "
                f"{points[-1][0]:,}",
                f"{slope:,.3g} a step over the second half of the run, without an end in sight.",
                "A longer run will end for want of it: checkpoint often, and look for what is kept from step to step.",
                Weight.NOTE,
                points[0][0],
            )


def _running_out(seen: Evidence) -> Iterator[Finding]:
    """The run's own forecasts, step by step (rlvr_exp.training.guards_trend)."""
    for name in sorted({name for row in seen.metrics for name in row if "system/steps_left/" in name}):
        step, left = seen.column(name)[-1]
        yield Finding(
            "running_out",
            f"{name.rpartition('/')[2]} was running out: at step {step:,} it would have lasted {left:,.0f} more steps",
            f"Foreseen in {len(seen.column(name)):,} rows from the growth of the steps before.",
            "The message of that step in log.txt says what to do.",
            Weight.NOTE,
            seen.column(name)[0][0],
        )


def _rises(points: Sequence[tuple[int, float]]) -> bool:
    size = max(1, len(points) // 10)
    means = [fmean(value for _, value in points[start : start + size]) for start in range(0, len(points), size)]
    rises = sum(after > before for before, after in pairwise(means))
    return rises >= STEADY * (len(means) - 1)


def _slow_verifier(seen: Evidence) -> Iterator[Finding]:
    steps = dict(seen.column("time/step"))
    parts = [(step, value / steps[step]) for step, value in seen.column("time/verify") if steps.get(step)]
    slow = Share(sum(part > WAITING for _, part in parts), len(parts))
    if slow.of >= 3 and slow.value > 0.5:
        yield Finding(
            "slow_verifier",
            f"Slow verifier: in {slow} rows more than half of a step was spent waiting for verdicts",
            f"{middle(late(parts)):.0%} of a step at last.",
            "More sandbox.workers, lower limits for candidates that hang (sandbox.cpu_s), cache.enabled=true.",
            Weight.NOTE,
        )


def _short(seen: Evidence) -> Iterator[Finding]:
    rose = any(change["low"] > 0 for change in seen.change.values())
    if seen.trains and 0 < seen.steps < SHORT and not rose:
        yield Finding(
            "short",
            f"Too short to tell: {seen.steps} steps",
            "A policy moves little in so few steps, and success in one step varies with its tasks.",
            "Raise algorithm.max_steps.",
            Weight.NOTE,
        )


def _few_tasks(seen: Evidence) -> Iterator[Finding]:
    tasks = {task for one in seen.step_counts for task in one.tasks}
    groups = sum(one.groups for one in seen.step_counts)
    if tasks and len(tasks) < FEW_TASKS and groups > 3 * len(tasks):
        yield Finding(
            "few_tasks",
            f"Few tasks: {groups:,} groups sampled {len(tasks)} different tasks",
            "Success in training says little about others; see the held-out rates.",
            "More data: data.limit, data.path.",
            Weight.NOTE,
        )
