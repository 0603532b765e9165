"""Causes in the result: what was learned is narrow, belongs to the training tasks, or is a loss; and notes on time and memory."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from operator import methodcaller
from statistics import fmean, linear_regression
from typing import Any

from rlvr_exp.core.statistics import t_interval
from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.causes.proposals import (
    all_data,
    better_values,
    checked_answers,
    fewer_steps,
    harder_kl,
    larger_batch,
    lower_rate,
    more_steps,
    quicker_verdicts,
    rare_answers,
    signal,
    together,
)
from rlvr_exp.report.data import StepCounts
from rlvr_exp.report.evidence import PASS_RATES, Evidence, Share, halfway, in_points, late, middle, share

GAP = 0.05
"""Part of success by which training must have risen more than the held-out tasks, beyond both intervals."""
REPEATED = 3
"""Groups for each training task from which on a policy can have learned the tasks themselves."""
NOISY_VALUES = -0.2
"""A share of explained variance that is worse than no baseline."""
UNTAUGHT, LEARNED = 0.4, 1.0
"""Share of answers without a program after supervised steps that is not yet a policy; the loss, in nats a token, of one that
knows its texts."""


def _overfit(seen: Evidence) -> Sign | None:
    """The same training tasks are solved more often at the end, and the held-out tasks are not."""
    change = next((seen.change[name] for name in PASS_RATES if name in seen.change), None)
    if change is None or not seen.comparable:
        return None
    groups = sum(one.groups for one in seen.step_counts)
    tasks = {task for one in seen.step_counts for task in one.tasks}
    rises = _rises_by_task(seen.step_counts)
    if len(rises) < 2 or groups < REPEATED * len(tasks):
        return None
    rise = t_interval(rises)
    if not rise.low > 0 or rise.low - change["high"] <= GAP:
        return None
    facts = {"rise": 100 * rise.value, "tasks": len(tasks), "groups": groups, "change": in_points(change)}
    begun = halfway(seen.step_counts, lambda one: one.group_success)
    effect = 1 - max(0.0, change["value"]) / rise.value
    return Sign(weight=Weight.HOLDS_BACK, effect=effect, onset=begun, rows=seen.failed(), facts=facts)


def _rises_by_task(steps: Sequence[StepCounts]) -> list[float]:
    """By how much the success of each task rose from the first to the last third of the steps, if it was sampled in both."""
    third = max(1, len(steps) // 3)
    ends = [_by_task(part) for part in (steps[:third], steps[-third:])]
    return [ends[1][task] - ends[0][task] for task in ends[0].keys() & ends[1].keys()]


def _by_task(steps: Sequence[StepCounts]) -> dict[str, float]:
    counts: dict[str, list[int]] = {}
    for one in steps:
        for task, (passed, judged) in one.tasks.items():
            count = counts.setdefault(task, [0, 0])
            count[0] += passed
            count[1] += judged
    return {task: passed / judged for task, (passed, judged) in counts.items() if judged}


def _sharpened(seen: Evidence) -> Sign | None:
    """The first answer got better and the best of several worse, one of them or their difference by its interval."""
    tries = [int(name[8:]) for name in seen.change if re.fullmatch(r"pass_at_\d+", name)]
    if max(tries, default=1) == 1 or "pass_at_1" not in seen.change:
        return None
    one, many = seen.change["pass_at_1"], seen.change[f"pass_at_{max(tries)}"]
    apart = math.hypot(one["value"] - one["low"], many["high"] - many["value"])
    if not many["value"] < 0 < one["value"] or (many["high"] >= 0 and one["value"] - many["value"] <= apart):
        return None
    facts = {"k": max(tries), "one": in_points(one), "many": in_points(many), "entropy": seen.entropies}
    return Sign(weight=Weight.HOLDS_BACK, facts=facts)


def _untaught(seen: Evidence) -> Sign | None:
    """Supervised steps from a policy that wrote no programs: it was none before, either."""
    if not seen.imitates or seen.after is None:
        return None
    before, after = (
        share([one], methodcaller("unread", "parse", "truncated")) for one in (seen.before or seen.after, seen.after)
    )
    first, last = seen.ends("loss")
    if min(before.low, after.low) < UNTAUGHT or not LEARNED < last < first:
        return None
    facts = {"steps": seen.steps, "first": first, "last": last}
    return Sign(after, Weight.HOLDS_BACK, rows=seen.failed(), facts=facts)


def _values(seen: Evidence) -> Sign | None:
    """With the values as a baseline, advantages are noisier than without any."""
    points = late(seen.column("value/explained_variance"))
    worse = Share(sum(value < NOISY_VALUES for _, value in points), len(points))
    if worse.low <= 0.5 or seen.rose:
        return None
    return Sign(worse, Weight.HOLDS_BACK, facts={"most": max(value for _, value in points)})


def _worse(seen: Evidence) -> Sign | None:
    """Success fell, and no other cause explains it."""
    if not seen.trains or not seen.losses:
        return None
    first, last = seen.series[:1], late(seen.series)
    if seen.before is not None and seen.after is not None:
        first, last = [seen.before], [seen.after]
    names = {name for one in (*first, *last) for name in one.verdicts} - {"passed"}
    ends = {name: [share(part, methodcaller("met", name)).value for part in (first, last)] for name in sorted(names)}
    most = max(ends, key=lambda name: ends[name][1] - ends[name][0], default="")
    rates = [rate for _, rate in seen.column("learning_rate")]
    parts = [
        f"Largest increase: {most}, from {ends[most][0]:.0%} to {ends[most][1]:.0%} of the answers." if most else "",
        seen.entropies,
        f"{seen.changed} held-out answers changed." if seen.changed.of else "",
        f"The learning rate reached {max(rates):.3g}." if rates else "",
    ]
    facts = {"outcome": "; ".join(seen.losses), "parts": " ".join(filter(None, parts))}
    return Sign(weight=Weight.HOLDS_BACK, onset=seen.steps, rows=seen.failed(), facts=facts)


OF_OUTCOME = (
    Cause("overfit", _overfit,
        "Overfitting: success rose by {rise:.0f} points on repeated training tasks and by {change} on held-out tasks",
        "{groups:,} groups sampled {tasks:,} different tasks. The policy learned these tasks.",
        "Use more varied training tasks.", together(all_data, fewer_steps),
        explains=("few_tasks", "worse", "dead_solved"), by_outcome=True),
    Cause("sharpening", _sharpened,
        "Sharpening: pass@1 changed by {one}, pass@{k} by {many}",
        "The policy repeats answers that it already knew and has lost other correct answers. It solves fewer tasks in {k} "
        "attempts. {entropy}",
        remedies=together(rare_answers, signal, fewer_steps), by_outcome=True, doubts=True),
    Cause("untaught", _untaught,
        "Too few steps: after {steps} steps {share} held-out answers contain no program",
        "The loss fell from {first:.3g} to {last:.3g}. The policy is still learning the language.",
        "Or use a policy that knows the language.", more_steps,
        explains=("parse", "truncation", "random_policy", "exploding", "none_pass")),
    Cause("values", _values,
        "Wrong values: the value function explains at most {most:.2g} of the variance of returns in {share} rows",
        "A negative share means that the baseline adds noise to the advantages.",
        "Or use an algorithm with a group baseline (+stage=grpo).", better_values, alone=True),
    Cause("worse", _worse,
        "Updates make the policy worse: {outcome}",
        "No other cause was found. {parts}",
        "Read the answers that failed after training, and check reference answers and tests with +stage=validate.",
        together(lower_rate, larger_batch, harder_kl, checked_answers), alone=True, later=5, by_outcome=True),
)  # fmt: skip


GROWING = re.compile(r"(^|/)system/(rss_mb|open_files|disk_used_mb)$")
GROWTH, STEADY, ROWS = 0.2, 0.9, 20
"""Growth over the second half of a run, as a part of its mean; share of tenths that rise; rows that it takes."""
WAITING = 0.5
"""Part of a step spent waiting for verdicts after sampling has ended."""
SHORT = 10
"""Below so many steps, success is chance."""
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
    forecasts = "; ".join(
        f"{name.rpartition('/')[2]} was running out: at step {points[-1][0]:,} it sufficed for {points[-1][1]:,.0f} more "
        "steps"
        for name, points in sorted(found.items())
    )
    return _note(
        min(points[0][0] for points in found.values()), forecasts=forecasts, rows=max(map(len, found.values()))
    )


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
        "{slopes} per step over the second half of the run.",
        "A longer run will exhaust the resource. Checkpoint often, and look for data that is kept from step to step."),
    Cause("running_out", _running_out,
        "{forecasts}",
        "Forecast in {rows:,} rows from the growth of earlier steps.",
        "See the message of that step in log.txt."),
    Cause("slow_verifier", _slow_verifier,
        "Slow verifier: in {slow} rows waiting for verdicts takes more than half of the step",
        "{part:.0%} of a step in the last third of the run.", remedies=quicker_verdicts),
    Cause("short", _short,
        "Short run: {steps} steps",
        "A policy changes little in few steps, and the success of one step depends on its tasks.", remedies=more_steps),
    Cause("few_tasks", _few_tasks,
        "Few tasks: {groups:,} groups sampled {tasks} different tasks",
        "Success in training says little about other tasks. See the held-out rates.",
        "Use more data.", all_data),
)  # fmt: skip
