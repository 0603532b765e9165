"""An evaluation in its run directory: the completions, and a second file with the numbers, which are computed once.

`evaluation/before.jsonl.gz` has the completions. `evaluation/before.json` has the rates, families, verdict counts and
latency that the report shows. The files of `after` also have the paired change since `before`, if the run measured the
same tasks then. No other code computes these numbers.

Runs can share a measurement before training: equal weights on equal tasks, sampled and judged alike, are measured once.
A run finds it in the folder `evaluation.remember` by a hash of everything that determines its samples.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.evaluation.metrics import (
    METRICS,
    Rate,
    family_rates,
    latency,
    measure_rates,
    rates_from,
    task_values,
    verdict_counts,
)
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.records.manifest import run_fingerprint
from rlvr_exp.records.rollout_files import EvalSample, When, evaluation_path, read_evaluation, write_evaluation


def save(
    run_dir: Path,
    when: When,
    results: Sequence[EvalSample],
    metrics: Sequence[str] = METRICS,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Rate]:
    """Write both files, with `more` numbers by name. Return the rates for `summary.json`."""
    rates = rates_from(results, metrics)
    write_evaluation(run_dir, when, results)
    numbers = _numbers(results, rates, metrics) | dict(more or {})
    if when == "after" and evaluation_path(run_dir, "before").exists():
        numbers["change"] = changes(read_evaluation(run_dir, "before"), results, metrics)
    write_json(run_dir / "evaluation" / f"{when}.json", numbers)
    return rates


def read_numbers(run_dir: Path, when: When) -> dict[str, Any]:
    """Return the numbers of a completed evaluation. Raises OSError or ValueError if there are none."""
    return json.loads((run_dir / "evaluation" / f"{when}.json").read_text(encoding="utf-8"))


def saved_rates(run_dir: Path, when: When) -> dict[str, Rate] | None:
    """Return the rates of a completed evaluation; None if it is missing or damaged."""
    try:
        read_evaluation(run_dir, when)
        return {metric: Rate(**rate) for metric, rate in read_numbers(run_dir, when)["rates"].items()}
    except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _numbers(results: Sequence[EvalSample], rates: Mapping[str, Rate], metrics: Sequence[str]) -> dict[str, Any]:
    measured = measure_rates(results)
    return {
        "rates": _plain(rates),
        **({"measures": _plain(measured)} if measured else {}),
        "families": {family: _plain(of_family) for family, of_family in family_rates(results, metrics).items()},
        "verdicts": {mode: verdict_counts(r for r in results if r.mode == mode) for mode in ("greedy", "sampled")},
        "latency": latency(results),
        "tokens": sum(result.completion.tokens for result in results) / len(results) if results else 0.0,
    }


def changes(before: Sequence[EvalSample], after: Sequence[EvalSample], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the paired difference of each metric. Empty if the tasks differ, for example after a change of options."""
    tasks = [{result.completion.task.id for result in side} for side in (before, after)]
    if tasks[0] != tasks[1]:
        return {}
    sides = {metric: (task_values(before, metric), task_values(after, metric)) for metric in metrics}
    return {
        metric: paired(before, after, metric).to_dict()
        for metric, (first, second) in sides.items()
        if first.keys() & second.keys()
    }


def _plain(rates: Mapping[str, Rate]) -> dict[str, Any]:
    return {metric: rate.to_dict() for metric, rate in rates.items()}


LEARNING = ("stage", "reward", "algorithm", "optimizer", "scheduler", "schedule", "curriculum")
"""These nodes affect learning and no answer before training."""


def measurement(folder: str, run_dir: Path, split: str) -> Path:
    """Return the path of a run's measurement before training in the folder of shared measurements. It may not exist
    yet.

    Args:
        run_dir: its manifest has the configuration and the fingerprints of the data and the initial weights.
    """
    run = run_fingerprint(run_dir)
    options = {key: value for key, value in run["config"].items() if key.partition(".")[0] not in LEARNING}
    return Path(folder) / content_hash([options, run["data"][split], run["start"], run["versions"]])


def recall(place: Path) -> list[EvalSample] | None:
    """Return the samples of a shared measurement; None if it does not exist yet."""
    return read_evaluation(place, "before") if evaluation_path(place, "before").exists() else None


def remember(place: Path, scored: list[EvalSample]) -> None:
    write_evaluation(place, "before", scored)
