"""Success by task: the index `evaluation/tasks.json`, the table `evaluation/tasks.csv`, and its sections of the page.

The index has the difficulty and the reference answer of each evaluated task, for the report and the diagnosis. Tasks of a run
without an index are looked up in its data. A task is known only if its prompt is the one that was answered, so missing or
changed data is no error.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlvr_exp.config.load import build, load
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.records.rollout_files import EvalSample, RolloutRow, evaluation_path, read_evaluation
from rlvr_exp.report.charts import histogram
from rlvr_exp.report.data import WHENS, RunData, StepCounts, as_rollouts, paid_of, sampled_answers
from rlvr_exp.report.evidence import Share
from rlvr_exp.report.outcome import family_line
from rlvr_exp.report.rendering import part, words
from rlvr_exp.tasks.base import Domain, Task

INDEX = "evaluation/tasks.json"


@dataclass(frozen=True)
class TaskInfo:
    difficulty: float
    """By the domain's measure. Larger is harder."""
    gold: str | None


def save_task_index(run_dir: Path, tasks: Sequence[Task]) -> None:
    """Write the index of the evaluated tasks."""
    write_json(run_dir / INDEX, {task.id: asdict(_info(task)) for task in tasks})


def load_task_index(run_dir: Path, prompts: Mapping[str, str]) -> dict[str, TaskInfo]:
    """The index by task id.

    Args:
        prompts: the answered prompts, by task.
    """
    noted = run_dir / INDEX
    if noted.is_file():
        return {task: TaskInfo(**known) for task, known in json.loads(noted.read_text(encoding="utf-8")).items()}
    return look_up(run_dir, prompts)


def look_up(run_dir: Path, prompts: Mapping[str, str]) -> dict[str, TaskInfo]:
    """The tasks of the run's data with these prompts, by id; none if the data cannot be read."""
    if not prompts or not (run_dir / "config.yaml").is_file():
        return {}
    try:
        domain: Domain = build(load(run_dir / "config.yaml").data)
        tasks = (task for split in domain.splits().values() for task in split if task.id in prompts)
        return {task.id: _info(task) for task in tasks if domain.task_prompt(task) == prompts[task.id]}
    except InputError:
        return {}


def reference_answers(run: RunData) -> dict[str, str]:
    """Known reference answers by task: of the evaluated tasks, and of the training tasks if the run did not check any."""
    prompts = {one.completion.task.id: one.prompt for answers in run.answers.values() for one in answers}
    unchecked = (run.config.get("verifier") or {}).get("validate") == 0
    trained = {row.completion.task.id: row.prompt for row in run.rollouts} if unchecked else {}
    found = {**look_up(run.directory, trained), **load_task_index(run.directory, prompts)}
    return {task: one.gold for task, one in found.items() if one.gold is not None}


def _info(task: Task) -> TaskInfo:
    return TaskInfo(float(task.difficulty), task.gold)


TABLE = "evaluation/tasks.csv"
MOST, MOST_FAMILIES = 1000, 40
"""Tasks and families on the page."""
BINS = 5
"""Parts of the held-out tasks by difficulty."""
EARLY, LATE = 9, 1
SOLVED = {"always solved": 3, "sometimes solved": 4, "never solved": 6}
"""Colours."""
COLUMNS = (
    *("task", "family", "difficulty"),
    *(f"{when}_{name}" for when in WHENS for name in ("success", "passed", "judged", "greedy")),
    *("change", "commonest_failure"),
)

Row = dict[str, Any]


def save_task_table(run_dir: Path) -> None:
    """Write evaluation/tasks.csv from the evaluations that exist so far."""
    answers: dict[str, Sequence[EvalSample]] = {
        when: read_evaluation(run_dir, when) for when in WHENS if evaluation_path(run_dir, when).exists()
    }
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(task_rows(answers, load_task_index(run_dir, {})))
    write_text(run_dir / TABLE, text.getvalue())


def task_rows(answers: Mapping[str, Sequence[EvalSample]], known: Mapping[str, TaskInfo]) -> list[Row]:
    """A row of COLUMNS for each task, easiest first. None if a figure is unknown or was not measured.

    `success` is the pass rate of the sampled completions with a verdict. `commonest_failure` is that of the last evaluation.
    """
    of_task: dict[str, dict[str, list[EvalSample]]] = {}
    for when, some in answers.items():
        for one in some:
            of_task.setdefault(one.completion.task.id, {}).setdefault(when, []).append(one)
    rows = [_row(task, found, known.get(task)) for task, found in of_task.items()]
    return sorted(rows, key=lambda row: (row["difficulty"] is None, row["difficulty"] or 0.0, row["task"]))


def _row(task: str, found: Mapping[str, Sequence[EvalSample]], known: TaskInfo | None) -> Row:
    last = next(found[when] for when in reversed(WHENS) if when in found)
    failures = Counter(one.verdict.bucket or one.verdict.outcome for one in last if not one.completion.correct)
    row: Row = dict.fromkeys(COLUMNS) | {"task": task, "family": last[0].completion.task.family}
    row |= {"difficulty": known.difficulty if known else None}
    for when, some in found.items():
        judged = [one for one in some if one.verdict.outcome != "no_verdict"]
        sampled = [one.completion.correct for one in judged if one.mode == "sampled"]
        greedy = [int(one.completion.correct) for one in judged if one.mode == "greedy"]
        row |= {f"{when}_passed": sum(sampled), f"{when}_judged": len(sampled)}
        row |= {f"{when}_success": sum(sampled) / len(sampled) if sampled else None}
        row |= {f"{when}_greedy": greedy[0] if greedy else None}
    if row["before_success"] is not None and row["after_success"] is not None:
        row["change"] = row["after_success"] - row["before_success"]
    return row | {"commonest_failure": failures.most_common(1)[0][0] if failures else None}


def task_section(run: RunData, known: Mapping[str, TaskInfo]) -> Markup:
    """The table of tasks, sortable by column. Empty without an evaluation."""
    rows = task_rows(run.answers, known)
    shown = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
    shown = [name for name in shown if not name.endswith(("_judged", "_passed"))]
    if not rows:
        return Markup()
    cells = [[_cell(name, row[name]) for name in shown] for row in rows[:MOST]]
    return part(
        "task_table", heads=[_title(name) for name in shown], rows=cells, file=TABLE, most=MOST, count=len(rows)
    )


def _title(name: str) -> str:
    when, _, rest = name.partition("_")
    return f"{'sampled' if rest == 'success' else rest}, {when}" if when in WHENS else words(name)


def _cell(name: str, value: Any) -> tuple[str | None, str | Markup]:
    """(value to sort by, text)."""
    if value is None:
        return "", part("absent")
    if isinstance(value, str):
        return None, words(value) if name != "task" else value
    text = f"{value:.3g}" if name == "difficulty" else f"{100 * value:+.0f}" if name == "change" else f"{value:.0%}"
    return f"{value:.6f}", text


def distributions(run: RunData, known: Mapping[str, TaskInfo]) -> Markup:
    """Histograms of rewards, lengths and difficulties."""
    rows = [row for row in run.rollouts if not row.waited]
    paid = [row for row in rows if row.reward is not None]
    drawn = histogram("Completions by reward", *_early_and_late(paid, paid_of), counted="reward")
    if rows:
        drawn += histogram("Completions by length", *_early_and_late(rows, lambda row: row.completion.tokens), "tokens")
    else:
        answers = {when: as_rollouts(0, run.answers[when]) for when in WHENS if run.answers.get(when)}
        lengths = {f"held out, {when}": [row.completion.tokens for row in of] for when, of in answers.items()}
        drawn += histogram("Completions by length", lengths, [EARLY, LATE][-len(lengths) :], "tokens")
    rates = task_rates(next((run.answers[when] for when in reversed(WHENS) if run.answers.get(when)), ()))
    solved: dict[str, list[float]] = {name: [] for name in SOLVED}
    for task, rate in rates.items():
        if task in known:
            name = "always solved" if rate == 1 else "sometimes solved" if rate else "never solved"
            solved[name].append(known[task].difficulty)
    return drawn + histogram("Held-out tasks by difficulty", solved, [*SOLVED.values()], "difficulty", stacked=True)


def _early_and_late(
    rows: Sequence[RolloutRow], value: Callable[[RolloutRow], float]
) -> tuple[dict[str, list[float]], list[int]]:
    """The values of the first and of the last third of the steps that are kept, and their colours."""
    steps = sorted({row.step for row in rows})
    if len(steps) < 2:
        return {f"step {step}": [value(row) for row in rows] for step in steps}, [LATE] * len(steps)
    groups, third = {}, max(1, len(steps) // 3)
    for some in (steps[:third], steps[-third:]):
        name = f"steps {some[0]:,} to {some[-1]:,}" if len(some) > 1 else f"step {some[0]:,}"
        groups[name] = [value(row) for row in rows if row.step in some]
    return groups, [EARLY, LATE]


def difficulty_rows(run: RunData, known: Mapping[str, TaskInfo]) -> Markup:
    """Success in equal parts of the held-out tasks, easiest first. Empty if too few tasks are known."""
    values = {when: task_rates(run.answers.get(when, ())) for when in WHENS}
    met = {task for found in values.values() for task in found if task in known}
    tasks = sorted(met, key=lambda task: known[task].difficulty)
    if len(tasks) < BINS:
        return Markup()
    lines = []
    for number in range(BINS):
        some = tasks[number * len(tasks) // BINS : (number + 1) * len(tasks) // BINS]
        name = f"{known[some[0]].difficulty:.3g} to {known[some[-1]].difficulty:.3g}"
        found = {when: [of[task] for task in some if task in of] for when, of in values.items()}
        means: dict[str, Any] = {
            when: {**mean_interval(of)._asdict(), "n": len(of)} if of else None for when, of in found.items()
        }
        lines.append(_line(name, means))
    return part("difficulties", lines=lines)


def task_rates(answers: Iterable[EvalSample]) -> dict[str, float]:
    """Pass rate of each task's sampled answers, or of its greedy answer if there are no samples."""
    judged: dict[str, list[bool]] = {}
    for one in sampled_answers(answers):
        if one.verdict.outcome != "no_verdict":
            judged.setdefault(one.completion.task.id, []).append(one.completion.correct)
    return {task: sum(passes) / len(passes) for task, passes in judged.items()}


def _line(name: str, rates: Mapping[str, Any]) -> dict[str, Any]:
    return family_line(name, name, rates["before"], rates["after"], max(rate["n"] for rate in rates.values() if rate))


def training_families(run: RunData) -> Markup:
    """Success of each family in the first and in the last third of the training steps. Empty without rollouts."""
    third = max(1, len(run.step_counts) // 3)
    if len(run.step_counts) < 2:
        return Markup()
    sums = {"before": _summed(run.step_counts[:third]), "after": _summed(run.step_counts[-third:])}
    judged = sum((Counter({name: of for name, (_, of) in found.items()}) for found in sums.values()), Counter[str]())
    names = sorted({*sums["before"], *sums["after"]}, key=lambda name: (-judged[name], name))
    lines = [
        _line(words(name), {when: _share(*found.get(name, (0, 0))) for when, found in sums.items()})
        for name in names[:MOST_FAMILIES]
    ]
    return part("training_families", steps=third, lines=lines, left=max(0, len(names) - MOST_FAMILIES))


def _summed(step_counts: Iterable[StepCounts]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for one in step_counts:
        for name, (passed, judged) in one.families.items():
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + passed, before[1] + judged)
    return sums


def _share(count: int, of: int) -> dict[str, Any] | None:
    found = Share(count, of)
    return {"value": found.value, "low": found.low, "high": found.high, "n": of} if of else None
