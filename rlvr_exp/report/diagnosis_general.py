"""Whether what was learned in training holds for tasks that were not trained on."""

from collections.abc import Iterator

from rlvr_exp.report.evidence import Evidence, some, trend
from rlvr_exp.report.finding import Finding, Weight

GAP = 0.05
"""Part of success by which training must have risen more than the held-out tasks, beyond both intervals."""


def generalising(seen: Evidence) -> Iterator[Finding]:
    change = next((seen.change[name] for name in ("pass_at_1", "pass_at_1_greedy") if name in seen.change), None)
    training = trend(seen.step_counts, lambda one: one.group_success)
    if change is None or training is None or not training.rose:
        return
    if training.low - change["high"] <= GAP:
        return
    tasks = {task for one in seen.step_counts for task in one.tasks}
    groups = sum(one.groups for one in seen.step_counts)
    moved, low, high = (100 * change[key] for key in ("value", "low", "high"))
    yield Finding(
        "overfit",
        f"Overfitting: success rose by {100 * training.rise:.0f} points in training and by {moved:+.1f} "
        f"[{low:+.1f}, {high:+.1f}] on held-out tasks",
        f"Training went from {training.first:.1%} to {training.last:.1%}; {groups:,} groups sampled {len(tasks):,} "
        "different tasks. What was learned belongs to these tasks, or to how they differ from the held-out ones.",
        "More and more varied training tasks (data.limit, data.path), fewer steps (run.select stops at the best on "
        "tasks of its own), or a held-out split like the training one.",
        Weight.HOLDS_BACK,
        _half_way(seen, (training.first + training.last) / 2),
        some(row for row in reversed(seen.measured) if row.verdict.outcome == "failed"),
    )


def _half_way(seen: Evidence, half: float) -> int:
    means = (
        (one.step, sum(one.group_success) / len(one.group_success)) for one in seen.step_counts if one.group_success
    )
    return next((step for step, mean in means if mean >= half), 0)
