"""What the report shows, read from a run directory. Whatever a stage does not write, or not yet, is simply empty."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.run.rollout_files import Rollout, evaluation_path, read_evaluation, read_rollouts, rollout_steps
from rlvr_exp.run.tracking import Row, read_metrics

WHENS = ("before", "after")
MOST_FILES = 300
"""Rollout files that are counted; of more, equally spaced ones, so that the report of a long run takes seconds."""


@dataclass(frozen=True)
class RunData:
    """One run directory, as far as it is written."""

    name: str
    config_text: str
    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    metrics: Sequence[Row]
    numbers: Mapping[str, Mapping[str, Any]]
    """By when: rates, families, verdict counts and latency of an evaluation."""
    answers: Mapping[str, Sequence[Mapping[str, Any]]]
    """By when, before first: the scored completions of an evaluation."""
    verdicts: Mapping[int, Mapping[str, int]]
    """By step: how many training completions met which verdict."""
    verdicts_every: int
    """Every how many-th rollout file was counted; 1 unless there are very many."""
    last_rollouts: Sequence[Rollout]


def read_run(run_dir: Path) -> RunData:
    """Read what is there.

    Raises:
        InputError: no such directory, or one of its files is damaged; names the file.
    """
    if not run_dir.is_dir():
        raise InputError(Problem(str(run_dir), "no such directory", remedy="name a run directory"))
    config = run_dir / "config.yaml"
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    verdicts, every, last = _rollouts(run_dir)
    return RunData(
        name=run_dir.resolve().name,
        config_text=text,
        config=_parsed(config, yaml.safe_load, text),
        manifest=_json(run_dir / "manifest.json"),
        summary=_json(run_dir / "summary.json"),
        metrics=read_metrics(run_dir),
        numbers={when: found for when in WHENS if (found := _json(run_dir / "evaluation" / f"{when}.json"))},
        answers={when: read_evaluation(run_dir, when) for when in WHENS if evaluation_path(run_dir, when).exists()},
        verdicts=verdicts,
        verdicts_every=every,
        last_rollouts=last,
    )


def _rollouts(run_dir: Path) -> tuple[dict[int, Counter[str]], int, list[Rollout]]:
    """Verdict counts by step, every how many-th file they are from, and the last step's rows."""
    files = list(rollout_steps(run_dir).items())
    every = max(1, math.ceil(len(files) / MOST_FILES))
    verdicts: dict[int, Counter[str]] = {}
    rows: list[Rollout] = []
    # counted from the end, so that the last step is among them
    for step, path in sorted(files[::-1][::every]):
        rows = read_rollouts(path)
        verdicts[step] = Counter(row.bucket or row.outcome for row in rows if not row.waited)
    return verdicts, every, rows


def _json(path: Path) -> dict[str, Any]:
    return _parsed(path, json.loads, path.read_text(encoding="utf-8")) if path.exists() else {}


def _parsed(path: Path, parse: Any, text: str) -> dict[str, Any]:
    try:
        value = parse(text) or {}
    except (ValueError, yaml.YAMLError) as fault:
        raise InputError(Problem(str(path), "cannot be read", got=str(fault), remedy="restore the file")) from fault
    if not isinstance(value, dict):
        raise InputError(Problem(str(path), "holds no mapping", got=type(value).__name__, remedy="restore the file"))
    return value
