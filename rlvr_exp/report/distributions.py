"""Distributions over a run: rewards and lengths early and late, success by difficulty of the held-out tasks, and by family in
training.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.records.rollout_files import EvalSample, RolloutRow
from rlvr_exp.report.charts import histogram
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.evidence import Share
from rlvr_exp.report.outcome import track_of
from rlvr_exp.report.step_counts import StepCounts, as_rollouts, paid_of, sampled_answers
from rlvr_exp.report.tasks import TaskInfo

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


BINS = 5
MOST_FAMILIES = 40


def difficulty_rows(run: RunData, known: Mapping[str, TaskInfo]) -> str:
    """Held-out tasks in equal parts from the easiest to the hardest; '' where no task is known."""
    values = {when: task_rates(run.answers.get(when, ())) for when in WHENS}
    tasks = sorted(
        {task for found in values.values() for task in found if task in known}, key=lambda t: known[t].difficulty
    )
    if len(tasks) < BINS:
        return ""
    rows = []
    for number in range(BINS):
        part = tasks[number * len(tasks) // BINS : (number + 1) * len(tasks) // BINS]
        rates = {when: _rate(values[when], part) for when in WHENS}
        low, high = known[part[0]].difficulty, known[part[-1]].difficulty
        rows.append(_line(f"{low:.3g} to {high:.3g}", rates))
    note = (
        "Equal parts of the held-out tasks, easiest first, by the domain's own measure of difficulty; sampled answers."
    )
    return f'<p class="note">{note}</p><div class="families">{"".join(rows)}</div>'


def task_rates(answers: Iterable[EvalSample]) -> dict[str, float]:
    """Share of each task's sampled answers that pass, or of its greedy answer where there are no samples."""
    judged: dict[str, list[bool]] = {}
    for one in sampled_answers(answers):
        if one.verdict.outcome != "no_verdict":
            judged.setdefault(one.completion.task.id, []).append(one.completion.correct)
    return {task: sum(passes) / len(passes) for task, passes in judged.items()}


def _rate(values: Mapping[str, float], tasks: Sequence[str]) -> dict[str, float] | None:
    of_part = [values[task] for task in tasks if task in values]
    return {**mean_interval(of_part)._asdict(), "n": len(of_part)} if of_part else None


def _line(name: str, rates: Mapping[Any, Any]) -> str:
    both = " &rarr; ".join(f"{100 * rates[when]['value']:.0f}%" for when in WHENS if rates[when])
    count = max(rates[when]["n"] for when in WHENS if rates[when])
    return (
        f'<div class="family"><span title="{escape(name)}">{escape(name)}</span>'
        f"{track_of(*(rates[when] for when in WHENS))}"
        f"<b>{both}</b><small>n={count}</small></div>"
    )


def training_families(run: RunData) -> str:
    """Success of each family in training: the first third of the steps against the last; '' without rollouts."""
    third = max(1, len(run.step_counts) // 3)
    if len(run.step_counts) < 2:
        return ""
    parts = {"before": run.step_counts[:third], "after": run.step_counts[-third:]}
    sums = {when: _summed(part) for when, part in parts.items()}
    names = sorted(
        {*sums["before"], *sums["after"]}, key=lambda name: -sum(sums[when].get(name, (0, 0))[1] for when in WHENS)
    )
    rows = [_family(name, {when: sums[when].get(name) for when in WHENS}) for name in names[:MOST_FAMILIES]]
    left = (
        f'<p class="note">{len(names) - MOST_FAMILIES:,} rarer families are left out.</p>'
        if len(names) > MOST_FAMILIES
        else ""
    )
    note = f"First third of the steps (hollow) against the last (filled): passes among what was judged, {third} steps each."
    return f'<p class="note">{note}</p><div class="families">{"".join(rows)}</div>{left}'


def _summed(step_counts: Iterable[StepCounts]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for one in step_counts:
        for name, (passed, judged) in one.families.items():
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + passed, before[1] + judged)
    return sums


def _family(name: str, counts: Mapping[str, tuple[int, int] | None]) -> str:
    rates = {}
    for when, count in counts.items():
        found = Share(*count) if count and count[1] else None
        rates[when] = (
            None if found is None else {"value": found.value, "low": found.low, "high": found.high, "n": found.of}
        )
    return _line(words(name), rates)
