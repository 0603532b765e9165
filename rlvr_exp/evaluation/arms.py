"""Runs that differ in nothing but their seed are an arm; their evaluations are pooled by task.

Each task's value is its mean over the seeds, so that several seeds still count a task once: intervals are over tasks, and
the spread over seeds stands beside them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.config.excess_code import EXCESS_CODE
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.evaluation.paired import difference, pooled
from rlvr_exp.records.rollout_files import When, evaluation_path, read_evaluation

BEFORE: When = "before"
AFTER: When = "after"


@dataclass(frozen=True)
class Arm:
    """Runs of several seeds as one; plain data, as in JSON."""

    name: str
    runs: tuple[int, ...]
    """Indices of its runs."""
    seeds: tuple[Any, ...]
    rates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By `before/METRIC` and `after/METRIC`: value, low and high, `n` tasks, and `of_seeds`, the value of each seed."""
    change: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By metric: after minus before, paired by task."""
    against_first: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By metric: after, minus the first arm's after, paired by task; empty for the first arm and for other tasks."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Values:
    """A metric of an evaluation."""

    answered: frozenset[str]
    """All of its tasks."""
    by_task: Mapping[str, float]
    """Of the tasks that could be judged."""


def arms(names: Sequence[str], seeds: Sequence[Any], directories: Sequence[Path]) -> list[Arm]:
    """The arms of some runs, in the order of their first runs; runs of one name are one arm."""
    measured = [_evaluated(directory) for directory in directories]
    members = {name: [i for i, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}
    pooled_by_arm = {name: _pooled([measured[i] for i in runs]) for name, runs in members.items()}
    first = next(iter(pooled_by_arm.values()), {})
    found = []
    for name, runs in members.items():
        values = pooled_by_arm[name]
        rates = {key: _rate(of, [measured[i][key] for i in runs]) for key, of in values.items()}
        against = _differences(first, values, AFTER) if values is not first else {}
        change = _differences(values, values, BEFORE)
        found.append(Arm(name, tuple(runs), tuple(seeds[i] for i in runs), rates, change, against))
    return found


def _evaluated(directory: Path) -> dict[str, _Values]:
    """By `WHEN/METRIC`."""
    values = {}
    for when in (BEFORE, AFTER):
        if evaluation_path(directory, when).exists():
            results = read_evaluation(directory, when)
            answered = frozenset(one.completion.task.id for one in results)
            numbers = json.loads((directory / "evaluation" / f"{when}.json").read_text(encoding="utf-8"))
            values |= {f"{when}/{name}": _Values(answered, task_values(results, name)) for name in numbers["rates"]}
    return values


def _pooled(seeds: Sequence[Mapping[str, _Values]]) -> dict[str, _Values]:
    """What every seed measured on the same tasks, by the tasks that every seed could judge."""
    found = {}
    for key in seeds[0]:
        of_seeds = [seed[key] for seed in seeds if key in seed]
        same = len(of_seeds) == len(seeds) and len({one.answered for one in of_seeds}) == 1
        if same and (tasks := _judged(of_seeds)):
            by_task = pooled([{task: one.by_task[task] for task in tasks} for one in of_seeds])
            found[key] = _Values(of_seeds[0].answered, by_task)
    return found


def _judged(values: Sequence[_Values]) -> list[str]:
    return [task for task in values[0].by_task if all(task in other.by_task for other in values)]


def _rate(values: _Values, of_seeds: Sequence[_Values]) -> dict[str, Any]:
    each = [fmean(seed.by_task[task] for task in values.by_task) for seed in of_seeds]
    rates = list(values.by_task.values())
    return {**mean_interval(rates)._asdict(), "n": len(rates), "of_seeds": each}


def _differences(first: Mapping[str, _Values], second: Mapping[str, _Values], when: When) -> dict[str, dict[str, Any]]:
    """By metric: the second's after minus the first's `when`, where both answered the same tasks."""
    found = {}
    for key, after in second.items():
        metric = key.removeprefix("after/")
        before = first.get(f"{when}/{metric}")
        if (
            metric != key
            and before is not None
            and before.answered == after.answered
            and (tasks := _judged([before, after]))
        ):
            sides = ({task: one.by_task[task] for task in tasks} for one in (before, after))
            found[metric] = difference(*sides, less_is_better=metric in EXCESS_CODE).to_dict()
    return found
