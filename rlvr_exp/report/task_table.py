"""Success by task: `evaluation/tasks.csv`, and the same as a table on the page, each task with family and difficulty."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import write_text
from rlvr_exp.records.rollout_files import EvalSample, evaluation_path, read_evaluation
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.task_index import TaskInfo, load_task_index

NAME = "evaluation/tasks.csv"
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
    write_text(run_dir / NAME, text.getvalue())


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
    note = f'<p class="note">Held-out tasks, easiest first; a click on a column sorts. All are in {NAME}.{left}</p>'
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
