"""The report's data, read from a run directory. Files that a stage does not write, or not yet, are empty."""

import fcntl
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.scales import scale_of
from rlvr_exp.config.stages import imitates
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.rollout_files import (
    EvalSample,
    RolloutRow,
    When,
    evaluation_path,
    read_evaluation,
    read_rollouts,
    rollout_steps,
)
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.evidence import Evidence, Share
from rlvr_exp.report.step_counts import StepCounts, as_rollouts, count_step

WHENS: tuple[When, ...] = ("before", "after")
MOST_FILES, MOST_BYTES, MOST_KEPT = 300, 64 << 20, 24
"""Most rollout files that are counted, their most compressed bytes, and the most files whose rows are kept too; of
more, equally spaced ones including the first and the last, so that the report of a long run takes seconds and bounded
memory."""


@dataclass(frozen=True)
class RunData:
    """A run directory, as far as it has been written."""

    name: str
    directory: Path
    running: bool
    """A process is running it."""
    config_text: str
    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    metrics: Sequence[Row]
    numbers: Mapping[str, Mapping[str, Any]]
    """By when: rates, families, verdict counts and latency of an evaluation."""
    answers: Mapping[str, Sequence[EvalSample]]
    """By when, before first: the verified completions of an evaluation."""
    step_counts: Sequence[StepCounts]
    """Counts of the training completions, by step."""
    step_counts_every: int
    """One in how many rollout files was counted; 1 unless there are very many."""
    rollouts: Sequence[RolloutRow]
    """All completions of some of the steps."""
    last_rollouts: Sequence[RolloutRow]
    links: Sequence[str] = ()
    """Directories of the runs of a chain, below its own."""


def read_run(run_dir: Path) -> RunData:
    """Read the existing files.

    Raises:
        InputError: no such directory, or a file in it is damaged; names the file.
    """
    if not run_dir.is_dir():
        raise InputError(InputProblem(str(run_dir), "no such directory", remedy="name a run directory"))
    config = run_dir / "config.yaml"
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    summary = _json(run_dir / "summary.json")
    step_counts, every, kept = _rollouts(run_dir)
    return RunData(
        name=run_dir.resolve().name,
        directory=run_dir,
        running=not summary and _held(run_dir),
        config_text=text,
        config=_parsed(config, yaml.safe_load, text),
        manifest=_json(run_dir / "manifest.json"),
        summary=summary,
        metrics=_metrics(run_dir),
        numbers={when: found for when in WHENS if (found := _json(run_dir / "evaluation" / f"{when}.json"))},
        answers={when: read_evaluation(run_dir, when) for when in WHENS if evaluation_path(run_dir, when).exists()},
        step_counts=step_counts,
        step_counts_every=every,
        rollouts=kept,
        last_rollouts=[row for row in kept if row.step == kept[-1].step] if kept else [],
        links=[link["directory"] for link in _json(run_dir / "chain.json").get("links", ())],
    )


def evidence(run: RunData, golds: Mapping[str, str]) -> Evidence:
    """The evidence for the diagnosis; `golds` by task, as far as they are known."""
    last = int(run.metrics[-1]["step"] or 0) if run.metrics else 0
    rows = {when: as_rollouts(0 if when == "before" else last, answers) for when, answers in run.answers.items()}
    taught = imitates(str(run.config.get("stage")))  # Its rollouts are no groups that a reward compares.
    measured = {when: count_step(found[0].step, found) for when, found in rows.items() if found}
    return Evidence(
        metrics=[_of_last_role(row) for row in run.metrics],
        step_counts=() if taught else run.step_counts,
        rollouts=() if taught else run.rollouts,
        before=measured.get("before"),
        after=measured.get("after"),
        measured=[row for found in rows.values() for row in found],
        changed=_changed(run),
        change=_of_success(run.numbers.get("after", {}).get("change", {})),
        golds=golds,
        config=run.config,
        summary=run.summary,
        manifest=run.manifest,
    )


def _of_success(changes: Mapping[str, Mapping[str, float]]) -> dict[str, Mapping[str, float]]:
    """Of rates that should rise."""
    return {name: change for name, change in changes.items() if not scale_of(name).less_is_better}


def _of_last_role(row: Row) -> Row:
    """With the metrics of the last role, as the annotator of a cascade, whose completions are counted, under their bare
    names; unchanged where roles have none of their own."""
    role = next((name.removesuffix("learning_rate") for name in reversed(row) if name.endswith("/learning_rate")), None)
    return row if role is None else {name.removeprefix(role): value for name, value in row.items()}


def _changed(run: RunData) -> Share:
    """Answers whose text differs after training, of those generated both times."""
    texts = [
        {
            (one.completion.task.id, one.mode, one.completion.sample): one.completion.text
            for one in run.answers.get(when, ())
        }
        for when in WHENS
    ]
    both = texts[0].keys() & texts[1].keys()
    return Share(sum(texts[0][key] != texts[1][key] for key in both), len(both))


def _rollouts(run_dir: Path) -> tuple[list[StepCounts], int, list[RolloutRow]]:
    """Counts, the spacing of the counted files, and the rows that are kept."""
    files = list(rollout_steps(run_dir).items())
    size = sum(path.stat().st_size for _, path in files)
    every = max(1, math.ceil(len(files) / MOST_FILES), math.ceil(size / MOST_BYTES))
    counted = _spaced(files, every)
    kept_steps = {step for step, _ in _spaced(counted, max(1, math.ceil(len(counted) / MOST_KEPT)))}
    step_counts: list[StepCounts] = []
    kept: list[RolloutRow] = []
    for step, path in counted:
        # Of a cascade only the annotator's rows; the writer's stand for several, and are verified by another standard.
        rows = [row for row in read_rollouts(path) if "cascades" not in (row.about or {})]
        step_counts.append(count_step(step, rows))
        if step in kept_steps:
            kept += rows
    return step_counts, every, kept


def _spaced(files: Sequence[tuple[int, Path]], every: int) -> list[tuple[int, Path]]:
    """Every `every`-th, counted from the end, and the first."""
    return sorted({*files[::-1][::every], *files[:1]})


def _held(run_dir: Path) -> bool:
    """Whether a process holds the run: its lock is held until it ends, however it ends."""
    lock = run_dir / ".lock"
    if not lock.is_file():
        return False
    handle = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _metrics(run_dir: Path) -> list[Row]:
    try:
        return read_metrics(run_dir)
    except ValueError as fault:
        path = run_dir / "metrics.jsonl"
        raise InputError(
            InputProblem(str(path), "cannot be read", got=str(fault), remedy="restore the file")
        ) from fault


def _json(path: Path) -> dict[str, Any]:
    return _parsed(path, json.loads, path.read_text(encoding="utf-8")) if path.exists() else {}


def _parsed(path: Path, parse: Any, text: str) -> dict[str, Any]:
    try:
        value = parse(text) or {}
    except (ValueError, yaml.YAMLError) as fault:
        raise InputError(
            InputProblem(str(path), "cannot be read", got=str(fault), remedy="restore the file")
        ) from fault
    if not isinstance(value, dict):
        raise InputError(
            InputProblem(str(path), "holds no mapping", got=type(value).__name__, remedy="restore the file")
        )
    return value
