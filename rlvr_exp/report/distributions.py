"""How rewards and lengths are distributed, early and late, and how difficult the held-out tasks are that were solved."""

from collections.abc import Callable, Mapping, Sequence

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.charts import histogram
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.difficulty import task_rates
from rlvr_exp.report.step_counts import as_rollouts, paid_of
from rlvr_exp.report.task_index import TaskInfo

EARLY, LATE = 9, 1
SOLVED = {"always solved": 3, "sometimes": 4, "never solved": 6}
"""Colour of each."""


def distributions(run: RunData, known: Mapping[str, TaskInfo]) -> str:
    """Charts; '' where there is nothing to count."""
    rows = [row for row in run.rollouts if not row.waited]
    paid = [row for row in rows if row.reward is not None]
    rewards = histogram("Completions by reward", *_early_and_late(paid, paid_of), counted="reward")
    return rewards + _lengths(run, rows) + _difficulties(run, known)


def _early_and_late(
    rows: Sequence[RolloutRow], value: Callable[[RolloutRow], float]
) -> tuple[dict[str, list[float]], list[int]]:
    """The values of the first and of the last third of the steps that are kept, and their colours."""
    steps = sorted({row.step for row in rows})
    if len(steps) < 2:
        return {f"step {step}": [value(row) for row in rows] for step in steps}, [LATE] * len(steps)
    groups, third = {}, max(1, len(steps) // 3)
    for part in (steps[:third], steps[-third:]):
        name = f"steps {part[0]:,} to {part[-1]:,}" if len(part) > 1 else f"step {part[0]:,}"
        groups[name] = [value(row) for row in rows if row.step in part]
    return groups, [EARLY, LATE]


def _lengths(run: RunData, rows: Sequence[RolloutRow]) -> str:
    """Of training, else of the evaluations."""
    title, counted = "Completions by length", "tokens"
    if rows:
        return histogram(title, *_early_and_late(rows, lambda row: row.completion.tokens), counted=counted)
    answers = {when: as_rollouts(0, run.answers[when]) for when in WHENS if run.answers.get(when)}
    groups = {f"held out, {when}": [row.completion.tokens for row in found] for when, found in answers.items()}
    return histogram(title, groups, [EARLY, LATE][-len(groups) :], counted)


def _difficulties(run: RunData, known: Mapping[str, TaskInfo]) -> str:
    """The held-out tasks by how often the last evaluation solved them."""
    rates = task_rates(next((run.answers[when] for when in reversed(WHENS) if run.answers.get(when)), ()))
    groups: dict[str, list[float]] = {name: [] for name in SOLVED}
    for task, rate in rates.items():
        if task in known:
            name = "always solved" if rate == 1 else "sometimes" if rate else "never solved"
            groups[name].append(known[task].difficulty)
    return histogram("Held-out tasks by difficulty", groups, list(SOLVED.values()), "difficulty", stacked=True)
