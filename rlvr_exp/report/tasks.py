"""The evaluated tasks: their index in `evaluation/tasks.json`, and success by task in `evaluation/tasks.csv` and on the page.

The index holds difficulty and gold answer of each, for the report and the diagnosis; an evaluation writes it. Tasks of a
run without that file are looked up in its data; data that no longer exists, or has changed, is no fault: a task counts as
known only where its prompt is the one that was answered.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build, load
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.records.rollout_files import EvalSample, evaluation_path, read_evaluation
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.tasks.base import Domain, Task

INDEX = "evaluation/tasks.json"


@dataclass(frozen=True)
class TaskInfo:
    difficulty: float
    """By the domain's own measure; larger is harder."""
    gold: str | None


def save_task_index(run_dir: Path, tasks: Sequence[Task]) -> None:
    """Write the index of the tasks of an evaluation of this run."""
    write_json(run_dir / INDEX, {task.id: asdict(_info(task)) for task in tasks})


def load_task_index(run_dir: Path, prompts: Mapping[str, str]) -> dict[str, TaskInfo]:
    """The index by task id.

    Args:
        prompts: the answered prompts, by task.
    """
    noted = run_dir / INDEX
    if noted.is_file():
        return {task: TaskInfo(**known) for task, known in json.loads(noted.read_text(encoding="utf-8")).items()}
    if not prompts or not (run_dir / "config.yaml").is_file():
        return {}
    try:
        domain: Domain = build(load(run_dir / "config.yaml").data)
        return dict(_found(domain, prompts))
    except InputError:
        return {}


def _found(domain: Domain, prompts: Mapping[str, str]) -> Iterable[tuple[str, TaskInfo]]:
    for tasks in domain.splits().values():
        for task in tasks:
            if task.id in prompts and domain.task_prompt(task) == prompts[task.id]:
                yield task.id, _info(task)


def _info(task: Task) -> TaskInfo:
    return TaskInfo(float(task.difficulty), task.gold)


TABLE = "evaluation/tasks.csv"
MOST = 1000
"""Tasks on the page."""
COLUMNS = (
    *("task", "family", "difficulty"),
    *(f"{when}_{name}" for when in WHENS for name in ("success", "passed", "judged", "greedy")),
    *("change", "commonest_failure"),
)

Row = dict[str, Any]


def save_task_table(run_dir: Path) -> None:
    """Write the file from the evaluations that the run has made so far."""
    answers: dict[str, Sequence[EvalSample]] = {
        when: read_evaluation(run_dir, when) for when in WHENS if evaluation_path(run_dir, when).exists()
    }
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(task_rows(answers, load_task_index(run_dir, {})))
    write_text(run_dir / TABLE, text.getvalue())


def task_rows(answers: Mapping[str, Sequence[EvalSample]], known: Mapping[str, TaskInfo]) -> list[Row]:
    """A row of COLUMNS for each task, easiest first; None where a figure is not known or was not measured.

    `success` is the share of the sampled completions with a verdict that passed, `commonest_failure` that of the last
    evaluation.
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
        row |= {f"{when}_{name}": value for name, value in _figures(some).items()}
    if row["before_success"] is not None and row["after_success"] is not None:
        row["change"] = row["after_success"] - row["before_success"]
    return row | {"commonest_failure": failures.most_common(1)[0][0] if failures else None}


def _figures(answers: Sequence[EvalSample]) -> Row:
    judged = [one for one in answers if one.verdict.outcome != "no_verdict"]
    sampled = [one.completion.correct for one in judged if one.mode == "sampled"]
    greedy = [int(one.completion.correct) for one in judged if one.mode == "greedy"]
    figures: Row = {"success": sum(sampled) / len(sampled) if sampled else None}
    return figures | {"passed": sum(sampled), "judged": len(sampled), "greedy": greedy[0] if greedy else None}


def task_section(run: RunData, known: Mapping[str, TaskInfo]) -> str:
    """'' without an evaluation."""
    rows = task_rows(run.answers, known)
    if not rows:
        return ""
    shown = [name for name in COLUMNS if any(row[name] is not None for row in rows) and "_judged" not in name]
    shown = [name for name in shown if "_passed" not in name]
    heads = "".join(f"<th>{escape(_title(name))}</th>" for name in shown)
    body = "".join(f"<tr>{''.join(_cell(name, row[name]) for name in shown)}</tr>" for row in rows[:MOST])
    left = f" The first {MOST:,} of {len(rows):,}." if len(rows) > MOST else ""
    note = f'<p class="note">Held-out tasks, easiest first; a click on a column sorts. All are in {TABLE}.{left}</p>'
    return f'{note}<div class="wide tall"><table class="sortable"><tbody><tr>{heads}</tr>{body}</tbody></table></div>'


def _title(name: str) -> str:
    when, _, rest = name.partition("_")
    return f"{'sampled' if rest == 'success' else rest}, {when}" if when in WHENS else words(name)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return '<td data-value=""><span class="none">&ndash;</span></td>'
    if isinstance(value, str):
        return f"<td>{escape(words(value) if name != 'task' else value)}</td>"
    text = f"{value:.3g}" if name == "difficulty" else f"{100 * value:+.0f}" if name == "change" else f"{value:.0%}"
    return f'<td data-value="{value:.6f}">{text}</td>'
