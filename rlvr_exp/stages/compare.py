"""Compare runs side by side: the options that differ, how far each run came, and its measurements, with intervals.

Reads run directories and writes `compare.json` and `compare.md` into its own; runs nothing. Where two runs were
evaluated on the same held-out tasks, their difference is paired task by task, against the first run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.metrics import METRICS, task_values
from rlvr_exp.evaluation.paired import in_words, paired
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import evaluation_path, read_evaluation

NEEDED = ("config.yaml", "summary.json")
OWN_KEYS = ("run.dir",)
"""Options that always differ between runs."""
FACTS = ("stage", "status", "steps", "seconds")
ABSENT = "(absent)"


@dataclass(frozen=True)
class Finished:
    """The data of a run that a comparison reads."""

    directory: Path
    options: Mapping[str, Any]
    """By dotted key."""
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Each row holds a value per run, in the order of `runs`; None where a run has none."""

    runs: Sequence[str]
    options: Mapping[str, Sequence[Any]]
    """Only those that differ."""
    facts: Mapping[str, Sequence[Any]]
    metrics: Mapping[str, Sequence[Any]]
    """`before/...` and `after/...` rates, and the other metrics of the summaries."""
    differences: Mapping[str, Sequence[Any]]
    """The run's result minus the first run's, paired by task; None for the first and for other tasks."""


def run(config: Any, context: RunContext) -> StageResult:
    comparison = compare([Path(name) for name in config.compare.runs])
    text = as_markdown(comparison)
    write_json(context.directory / "compare.json", asdict(comparison))
    write_text(context.directory / "compare.md", text)
    context.progress(kind="note", text=text)
    return StageResult(metrics={"runs": len(comparison.runs), "options_that_differ": len(comparison.options)})


def compare(directories: Sequence[Path]) -> Comparison:
    """Compare finished runs.

    Raises:
        InputError: names every directory without a finished run and its missing files.
    """
    problems = [problem for directory in directories for problem in _lacking(directory)]
    if problems:
        raise InputError(*problems)
    runs = [_read(directory) for directory in directories]
    return Comparison(
        runs=_names(directories),
        options=_rows([run.options for run in runs], only_differing=True),
        facts={name: [run.summary.get(name) for run in runs] for name in FACTS},
        metrics=_rows([_measured(run.summary) for run in runs], only_differing=False),
        differences=_differences(runs),
    )


def _lacking(directory: Path) -> list[InputProblem]:
    if not directory.is_dir():
        return [InputProblem("compare.runs", f"{directory}: no such directory", remedy="name run directories")]
    missing = [name for name in NEEDED if not (directory / name).is_file()]
    what = f"{directory}: not a finished run"
    remedy = "wait for it to end, or leave it out"
    return (
        [InputProblem("compare.runs", what, got=f"without {' and '.join(missing)}", remedy=remedy)] if missing else []
    )


def _read(directory: Path) -> Finished:
    options = _parsed(directory / "config.yaml", yaml.safe_load)
    summary = _parsed(directory / "summary.json", json.loads)
    kept = {key: value for key, value in _flat(options).items() if key not in OWN_KEYS}
    return Finished(directory, kept, summary)


def _parsed(path: Path, parse: Any) -> dict[str, Any]:
    try:
        value = parse(path.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as fault:
        raise InputError(
            InputProblem(str(path), "cannot be read", got=str(fault), remedy="leave the run out")
        ) from fault
    if not isinstance(value, dict):
        raise InputError(
            InputProblem(str(path), "holds no mapping", got=type(value).__name__, remedy="leave the run out")
        )
    return value


def _flat(node: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested keys as dotted keys; a list is a single value."""
    flat: dict[str, Any] = {}
    for key, value in node.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, dict) and value else {f"{above}{key}": value}
    return flat


def _measured(summary: Mapping[str, Any]) -> dict[str, Any]:
    rates = {f"{when}/{name}": rate for when in ("before", "after") for name, rate in (summary.get(when) or {}).items()}
    return rates | dict(summary.get("metrics") or {})


def _rows(columns: Sequence[Mapping[str, Any]], only_differing: bool) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for column in columns for key in column):
        values = [column.get(key, ABSENT if only_differing else None) for column in columns]
        if not only_differing or any(_typed(value) != _typed(values[0]) for value in values):
            rows[key] = values
    return rows


def _typed(value: Any) -> str:
    """A text that distinguishes types too: true is not 1."""
    return json.dumps(value, sort_keys=True, default=str)


def _differences(runs: Sequence[Finished]) -> dict[str, list[Any]]:
    answers = [
        read_evaluation(run.directory, "after") if evaluation_path(run.directory, "after").exists() else []
        for run in runs
    ]
    tasks = [{one.completion.task.id for one in of_run} for of_run in answers]
    rows: dict[str, list[Any]] = {}
    for metric in METRICS:
        values = [task_values(of_run, metric) for of_run in answers]
        row: list[Any] = [None] * len(runs)
        for i in range(1, len(runs)):
            if tasks[i] == tasks[0] and values[i].keys() & values[0].keys():
                row[i] = paired(answers[0], answers[i], metric).to_dict()
        if any(row):
            rows[metric] = row
    return rows


def _names(directories: Sequence[Path]) -> list[str]:
    """The folder's own name, or its complete path where two folders share a name."""
    names = [directory.resolve().name for directory in directories]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, directories, strict=True)]


def as_markdown(comparison: Comparison) -> str:
    """Tables that are also readable as text; a table without rows is left out, except for the options."""
    rates = {name: row for name, row in comparison.metrics.items() if name.startswith(("before/", "after/"))}
    others = {name: row for name, row in comparison.metrics.items() if name not in rates}
    parts = [
        ("Options that differ", comparison.options),
        ("Runs", comparison.facts),
        ("Success, with 95% intervals over tasks", rates),
        (f"Change against {comparison.runs[0]}, paired by task", comparison.differences),
        ("Other metrics", others),
    ]
    return "\n".join(
        _table(title, rows, comparison.runs) for title, rows in parts if rows or rows is comparison.options
    )


def _table(title: str, rows: Mapping[str, Sequence[Any]], heads: Sequence[str]) -> str:
    if not rows:
        return f"{title}: none\n"
    cells = [["", *heads], *([key, *map(_cell, values)] for key, values in rows.items())]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"{title}\n", lines[0], rule, *lines[1:], ""])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict) and {"value", "low", "high"} <= value.keys():
        return _interval(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return (value if isinstance(value, str) else json.dumps(value, default=str)).replace("|", "\\|").replace("\n", " ")


def _interval(value: Mapping[str, Any]) -> str:
    if "won" in value:
        return in_words(value)
    mean, low, high = (100 * value[key] for key in ("value", "low", "high"))
    return f"{mean:.1f}% [{low:.1f}, {high:.1f}] n={value.get('n', '?')}"
