"""Compare runs side by side: options that differ, progress, and measurements with intervals.

The stage reads run directories and writes `compare.json` and `compare.md` into its own directory. If two runs were
evaluated on the same held-out tasks, their difference is paired by task, against the first run. Runs that differ only
in their seed are pooled, with intervals over seeds and tasks. So are the same links of a chain that was run with several seeds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.study import CHAIN
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import read_voted
from rlvr_exp.evaluation.arms import Arm, arms, arms_table, rows_of, table
from rlvr_exp.evaluation.metrics import METRICS, task_values
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.rollout_files import evaluation_path, read_evaluation
from rlvr_exp.runs.chain import STATE

NEEDED = ("config.yaml", "summary.json")
OWN_KEYS, SEED = ("run.dir",), "seed"
"""These options always differ between runs."""
LONGEST = 60
"""The name of an arm has at most this many characters of its options."""
FACTS = ("stage", "status", "steps", "seconds")


@dataclass(frozen=True)
class Finished:
    """The data that a comparison reads from a run."""

    directory: Path
    options: Mapping[str, Any]
    """By dotted key. The chain of a link is called {chain} in them."""
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Each row holds a value per run, in the order of `runs`; None if a run has none."""

    runs: Sequence[str]
    options: Mapping[str, Sequence[Any]]
    """Options that differ."""
    facts: Mapping[str, Sequence[Any]]
    metrics: Mapping[str, Sequence[Any]]
    """Rates `before/...` and `after/...`, and the other metrics of the summaries."""
    differences: Mapping[str, Sequence[Any]]
    """The result of the run minus the result of the first run, paired by task. None for the first run and for other
    tasks."""
    arms: Sequence[Arm] = ()
    """Runs that differ only in their seed, pooled. Empty if no two runs do."""


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
    runs = read_finished(directories)
    return Comparison(
        runs=_names(directories),
        options=rows_of([run.options for run in runs], only_differing=True),
        facts={name: [run.summary.get(name) for run in runs] for name in FACTS},
        metrics=rows_of([_measured(run.summary) for run in runs], only_differing=False),
        differences=_differences(runs),
        arms=_arms(runs),
    )


def read_finished(directories: Sequence[Path]) -> list[Finished]:
    """Raises InputError: as `compare`."""
    problems = [problem for directory in directories for problem in _lacking(directory)]
    if problems:
        raise InputError(*problems)
    return [_read(directory) for directory in directories]


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
    own = flat(options)
    chain = str(Path(own["run.dir"]).parent) if (directory.parent / STATE).is_file() else ""
    kept = {key: _within(chain, value) for key, value in own.items() if key not in OWN_KEYS}
    return Finished(directory, kept, summary)


def _within(chain: str, value: Any) -> Any:
    """An option without the place of the run's own chain: the chains of two seeds stand in two places."""
    if isinstance(value, list):
        return [_within(chain, one) for one in value]
    return value.replace(f"{chain}/", f"{{{CHAIN}}}/") if chain and isinstance(value, str) else value


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


def _measured(summary: Mapping[str, Any]) -> dict[str, Any]:
    rates = {f"{when}/{name}": rate for when in ("before", "after") for name, rate in (summary.get(when) or {}).items()}
    return rates | dict(summary.get("metrics") or {})


def _differences(runs: Sequence[Finished]) -> dict[str, list[Any]]:
    answers = [
        read_evaluation(run.directory, "after") if evaluation_path(run.directory, "after").exists() else []
        for run in runs
    ]
    tasks = [{one.completion.task.id for one in of_run} for of_run in answers]
    rows: dict[str, list[Any]] = {}
    voted = [name for run in runs for name in run.summary.get("after") or {} if read_voted(name)]
    for metric in dict.fromkeys([*METRICS, *voted]):
        values = [task_values(of_run, metric) for of_run in answers]
        row: list[Any] = [None] * len(runs)
        for i in range(1, len(runs)):
            if tasks[i] == tasks[0] and values[i].keys() & values[0].keys():
                row[i] = paired(answers[0], answers[i], metric).to_dict()
        if any(row):
            rows[metric] = row
    return rows


def _arms(runs: Sequence[Finished]) -> list[Arm]:
    """Name the arms by the options in which they differ. If these are too many, name each arm by its first run."""
    differing = rows_of([{**run.options, SEED: None} for run in runs], only_differing=True)
    names = [", ".join(f"{key}={values[i]}" for key, values in differing.items()) or "all" for i in range(len(runs))]
    if len(set(names)) == len(names):
        return []
    first = {name: runs[names.index(name)].directory for name in names}
    folders = dict(zip(first, _names(list(first.values())), strict=True))
    names = [name if len(name) <= LONGEST else folders[name] for name in names]
    return arms(names, [run.options.get(SEED) for run in runs], [run.directory for run in runs])


def _names(directories: Sequence[Path]) -> list[str]:
    """Return the name of the folder, or its full path if two folders share a name."""
    names = [directory.resolve().name for directory in directories]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, directories, strict=True)]


def as_markdown(comparison: Comparison) -> str:
    """Return tables that are also readable as text. Empty tables are left out, except for the options."""
    rates = {name: row for name, row in comparison.metrics.items() if name.startswith(("before/", "after/"))}
    others = {name: row for name, row in comparison.metrics.items() if name not in rates}
    parts = [
        ("Options that differ", comparison.options),
        ("Runs", comparison.facts),
        ("Success, with 95% intervals over tasks", rates),
        (f"Change against {comparison.runs[0]}, paired by task", comparison.differences),
        ("Other metrics", others),
    ]
    shown = [table(title, rows, comparison.runs) for title, rows in parts if rows or rows is comparison.options]
    if comparison.arms:
        shown.insert(-1 if others else len(shown), arms_table(comparison.arms))
    return "\n".join(shown)
