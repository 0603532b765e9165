"""Causes in the result: what was learned is narrow, belongs to the training tasks, or is a loss; and notes on time and memory."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from operator import methodcaller
from statistics import fmean, linear_regression
from typing import Any

from rlvr_exp.config.suited import extremes, far_rate
from rlvr_exp.report.evidence import Cause, Evidence, Share, Sign, Weight, halfway, in_points, late, middle, share

GAP = 0.05
"""Part of success by which training must have risen more than the held-out tasks, beyond both intervals."""
UNTAUGHT, LEARNED = 0.4, 1.0
"""Share of answers without a program after supervised steps that is not yet a policy; the loss, in nats a token, of one that
knows its texts."""


def _overfit(seen: Evidence) -> Sign | None:
    change = next((seen.change[name] for name in ("pass_at_1", "pass_at_1_greedy") if name in seen.change), None)
    training = seen.success if seen.step_counts else None
    if change is None or training is None or not training.low > 0 or training.low - change["high"] <= GAP:
        return None
    tasks = {task for one in seen.step_counts for task in one.tasks}
    facts = {
        "training": training, "rise": 100 * training.rise, "tasks": len(tasks),
        "groups": sum(one.groups for one in seen.step_counts), "change": in_points(change),
    }  # fmt: skip
    begun = halfway(seen.step_counts, lambda one: one.group_success)
    return Sign(weight=Weight.HOLDS_BACK, onset=begun, rows=seen.failed(), facts=facts)


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
    points = late(seen.column("value/explained_variance"))
    none = Share(sum(value <= 0 for _, value in points), len(points))
    if none.low <= 0.5 or seen.rose:
        return None
    return Sign(none, Weight.HOLDS_BACK, facts={"most": max(value for _, value in points)})


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


def _unusual(seen: Evidence) -> Sign | None:
    """An unusual option of a run that did not learn, if no other cause was found."""
    if not seen.trains or not seen.steps or seen.rose:
        return None
    found = list(extremes(lambda node, name: seen.option(f"{node}.{name}")))
    if seen.by_adam and seen.of_model("total"):
        found += far_rate(float(seen.option("optimizer.lr", 0.0)), seen.of_model("total"), seen.imitates, seen.adapts)
    return Sign(weight=Weight.HOLDS_BACK, facts={"first": found[0], "all": "; ".join(found)}) if found else None


OF_OUTCOME = (
    Cause("overfit", _overfit,
        "Overfitting: success rose by {rise:.0f} points in training and by {change} on held-out tasks",
        "Training success went from {training.first:.1%} to {training.last:.1%}. {groups:,} groups sampled {tasks:,} "
        "different tasks. The policy learned these tasks, or the differences between the splits.",
        "Use more varied training tasks (data.limit, data.path), fewer steps (run.select stops at the best step on its own "
        "tasks), or a held-out split like the training split.",
        explains=("few_tasks", "worse", "dead_solved")),
    Cause("sharpening", _sharpened,
        "Sharpening: pass@1 changed by {one}, pass@{k} by {many}",
        "The policy repeats answers that it already knew and has lost other correct answers. It solves fewer tasks in {k} "
        "attempts. {entropy}",
        "Methods with groups: set algorithm.entropy_target near the initial entropy, or algorithm.pass_k above 1. All "
        "methods: use fewer steps, a lower optimizer.lr, algorithm.kl_coef, a small algorithm.entropy_coef, a larger "
        "algorithm.clip_high, rarely solved tasks (algorithm.zero_variance=resample), or run.select.metric with pass@{k}."),
    Cause("untaught", _untaught,
        "Too few steps: after {steps} steps {share} held-out answers contain no program",
        "The loss fell from {first:.3g} to {last:.3g}. The policy is still learning the language.",
        "Use more algorithm.max_steps, or a policy that knows the language (model.path, model.name).",
        explains=("parse", "truncation", "random_policy", "exploding", "none_pass")),
    Cause("values", _values,
        "The value function explains nothing: at most {most:.2g} of the variance of returns in {share} rows",
        "Without a useful baseline, differences between tasks hide differences between answers.",
        "Use a higher rate or weight for the values (algorithm.value_coef, now {option[algorithm.value_coef]}), more "
        "steps, or an algorithm with a group baseline (algorithm=grpo).", alone=True),
    Cause("worse", _worse,
        "Updates make the policy worse: {outcome}",
        "No other cause was found. The rewards are correct, and the steps are too large for the information in the "
        "samples. {parts}",
        "Use a lower optimizer.lr (now {option[optimizer.lr]}), more tasks per step (algorithm.prompts_per_step), a KL "
        "penalty (algorithm.kl_coef), or run.select to keep the best checkpoint. Read the answers that failed after.",
        alone=True, later=5),
    Cause("unusual", _unusual,
        "Unusual option: {first}",
        "The run did not learn, and no other cause was found: {all}.",
        "Try usual values, one option at a time.", alone=True),
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
        "{part:.0%} of a step in the last third of the run.",
        "Use more sandbox.workers, lower limits for candidates that hang (sandbox.cpu_s), or cache.enabled=true."),
    Cause("short", _short,
        "Short run: {steps} steps",
        "A policy changes little in few steps, and the success of one step depends on its tasks.",
        "Raise algorithm.max_steps."),
    Cause("few_tasks", _few_tasks,
        "Few tasks: {groups:,} groups sampled {tasks} different tasks",
        "Success in training says little about other tasks. See the held-out rates.",
        "Use more data (data.limit, data.path)."),
)  # fmt: skip
