"""Comparison of arms. An arm is a set of runs that differ only in their seed. Arms are compared by seed and task.

Intervals are over seeds and tasks (rlvr_exp/core/crossed.py). Seeds are resampled like tasks, because an interval over
tasks would attribute the effect of the seed to the arm. The report shows the spread over seeds next to the interval.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.core.crossed import crossed_iqm, crossed_mean, crossed_median, crossed_ratio, holm
from rlvr_exp.core.measures import Scale, scale_of
from rlvr_exp.evaluation.metrics import task_values
from rlvr_exp.evaluation.paired import difference_over_seeds, finding, in_words
from rlvr_exp.records.rollout_files import When, evaluation_path, read_evaluation

ABSENT = "(absent)"

BEFORE: When = "before"

AFTER: When = "after"


@dataclass(frozen=True)
class Arm:
    """Runs of several seeds as one arm, in plain data as in JSON."""

    name: str
    runs: tuple[int, ...]
    """Indices of its runs."""
    seeds: tuple[Any, ...]
    """Seeds of the runs with all measurements of the arm. The other fields use these runs."""
    rates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By `before/METRIC` and `after/METRIC`: value, low and high, the number of tasks `n`, and the value of each seed
    `of_seeds`. `median` and `iqm`, the interquartile mean, are over all seeds and tasks and have intervals of their
    own."""
    change: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By metric: after minus before, paired by seed and task. `ratio` is the ratio of the means if before is above
    0."""
    against_first: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By metric: after of this arm minus after of the first arm, paired by seed and task. `p_holm` is corrected for all
    arms. Empty for the first arm and if the tasks differ."""
    findings: Mapping[str, str] = field(default_factory=dict)
    """By metric: `against_first` in words."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Values:
    """The values of one metric in the evaluations of an arm."""

    answered: frozenset[str]
    """Ids of all evaluated tasks."""
    by_task: Mapping[str, Sequence[float]]
    """The value of each seed, by task, for tasks that every seed could judge."""

    def rows(self, tasks: Iterable[str], seeds: Iterable[int] | None = None) -> list[list[float]]:
        """Return a row of task values per seed, for all seeds or for the seeds at the given indices."""
        columns = [self.by_task[task] for task in tasks]
        places = range(len(columns[0])) if seeds is None else seeds
        return [[column[place] for column in columns] for place in places]


def arms(names: Sequence[str], seeds: Sequence[Any], directories: Sequence[Path]) -> list[Arm]:
    """Return the arms in the order of their first runs. Runs of one name belong to one arm."""
    measured = [_evaluated(directory) for directory in directories]
    members = {name: [i for i, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}
    complete = {name: _fully_measured(runs, measured) for name, runs in members.items()}
    of_arms = {name: _joined([measured[i] for i in runs]) for name, runs in complete.items()}
    own_seeds = {name: [seeds[i] for i in runs] for name, runs in complete.items()}
    first = next(iter(members), "")
    against = {
        name: _differences(of_arms[first], values, AFTER, same_seeds(own_seeds[first], own_seeds[name]))
        for name, values in of_arms.items()
        if name != first
    }
    against = _corrected(against)
    found = []
    for name, runs in members.items():
        values, compared = of_arms[name], against.get(name, {})
        rates = {key: _rate(of, scale_of(key.partition("/")[2])) for key, of in values.items()}
        change = _differences(values, values, BEFORE, [(place, place) for place in range(len(complete[name]))])
        words = {
            metric: finding(first, name, one, [_level(of_arms[arm], metric) for arm in (first, name)], metric)
            for metric, one in compared.items()
        }
        found.append(Arm(name, tuple(runs), tuple(own_seeds[name]), rates, change, compared, words))
    return found


def same_seeds(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the index pairs of the runs to compare. Runs of equal seeds are paired; without a common seed, runs are
    paired in order."""
    left, found = list(range(len(first))), []
    for place, seed in enumerate(second):
        if (other := next((i for i in left if first[i] == seed), None)) is not None:
            left.remove(other)
            found.append((other, place))
    return found or list(zip(range(len(first)), range(len(second)), strict=False))


def _fully_measured(runs: Sequence[int], measured: Sequence[Mapping[str, _Values]]) -> list[int]:
    """Return the runs with all measurements of the arm. A run that failed before its last evaluation is left out, so
    that the others still form an arm."""
    every = {key for i in runs for key in measured[i]}
    return [i for i in runs if measured[i].keys() == every] or [*runs]


def _evaluated(directory: Path) -> dict[str, _Values]:
    """Return the values of a run by `WHEN/METRIC`."""
    values = {}
    for when in (BEFORE, AFTER):
        if evaluation_path(directory, when).exists():
            results = read_evaluation(directory, when)
            answered = frozenset(one.completion.task.id for one in results)
            numbers = json.loads((directory / "evaluation" / f"{when}.json").read_text(encoding="utf-8"))
            for name in numbers["rates"]:
                by_task = {task: (value,) for task, value in task_values(results, name).items()}
                values[f"{when}/{name}"] = _Values(answered, by_task)
    return values


def _joined(seeds: Sequence[Mapping[str, _Values]]) -> dict[str, _Values]:
    """Return the metrics that every seed measured on the same tasks, for the tasks that every seed could judge."""
    found = {}
    for key in seeds[0]:
        of_seeds = [seed[key] for seed in seeds if key in seed]
        same = len(of_seeds) == len(seeds) and len({one.answered for one in of_seeds}) == 1
        if same and (tasks := _judged(of_seeds)):
            by_task = {task: tuple(one.by_task[task][0] for one in of_seeds) for task in tasks}
            found[key] = _Values(of_seeds[0].answered, by_task)
    return found


def _judged(values: Sequence[_Values]) -> list[str]:
    return [task for task in values[0].by_task if all(task in other.by_task for other in values)]


def _rate(values: _Values, scale: Scale) -> dict[str, Any]:
    rows = values.rows(values.by_task)
    mean, others = crossed_mean(rows, ceiling=scale.high), {"median": crossed_median(rows), "iqm": crossed_iqm(rows)}
    counts = {"n": len(values.by_task), "of_seeds": [fmean(row) for row in rows]}
    return {**mean._asdict(), **counts, **{name: one._asdict() for name, one in others.items()}}


def _level(values: Mapping[str, _Values], metric: str) -> float:
    of_task = values[f"{AFTER}/{metric}"].by_task.values()
    return fmean(fmean(of_seeds) for of_seeds in of_task)


def _differences(
    first: Mapping[str, _Values], second: Mapping[str, _Values], when: When, pairs: Sequence[tuple[int, int]]
) -> dict[str, dict[str, Any]]:
    """Return, by metric, after of the second arm minus `when` of the first. Both must have answered the same tasks.

    Args:
        pairs: indices of the seeds to compare, first and second.
    """
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
            sides = (before.rows(tasks, [one for one, _ in pairs]), after.rows(tasks, [other for _, other in pairs]))
            between = difference_over_seeds(*sides, scale=scale_of(metric)).to_dict()
            has_ratio = any(map(any, sides[0]))  # There is none to 0.
            found[metric] = between | ({"ratio": crossed_ratio(*sides)._asdict()} if has_ratio else {})
    return found


def _corrected(against: Mapping[str, Mapping[str, dict[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Add Holm's correction of each metric over the compared arms."""
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in against}
    for metric in dict.fromkeys(metric for of_arm in against.values() for metric in of_arm):
        compared = {name: of_arm[metric] for name, of_arm in against.items() if metric in of_arm}
        for (name, one), p in zip(compared.items(), holm([one["p"] for one in compared.values()]), strict=True):
            found[name][metric] = one | {"p_holm": p, "arms": len(compared)}
    return found


def rows_of(columns: Sequence[Mapping[str, Any]], only_differing: bool) -> dict[str, list[Any]]:
    """Return the value of each column, by key. `only_differing` keeps the keys in which columns differ."""
    rows: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for column in columns for key in column):
        values = [column.get(key, ABSENT if only_differing else None) for column in columns]
        if not only_differing or any(_typed(value) != _typed(values[0]) for value in values):
            rows[key] = values
    return rows


def _typed(value: Any) -> str:
    """Return a text that also distinguishes types: true is not 1."""
    return json.dumps(value, sort_keys=True, default=str)


def table(title: str, rows: Mapping[str, Sequence[Any]], heads: Sequence[str]) -> str:
    """Return a table with a row of values for each name, in the order of the heads."""
    if not rows:
        return f"{title}: none\n"
    cells = [
        ["", *map(_cell, heads)],
        *([key, *(_cell(value, key) for value in values)] for key, values in rows.items()),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"{title}\n", lines[0], rule, *lines[1:], ""])


def arms_table(arms: Sequence[Arm], findings: bool = True) -> str:
    """Return a table with a column for each arm, followed by the findings in words. Empty if no arm has a
    measurement."""
    if not any(arm.rates for arm in arms):
        return ""
    rows: dict[str, list[Any]] = {"seeds": [", ".join(map(str, arm.seeds)) for arm in arms]}
    against = f"against {arms[0].name}/"
    parts = ("", [arm.rates for arm in arms]), ("change/", [arm.change for arm in arms])
    for before, of_arms in (*parts, (against, [arm.against_first for arm in arms])):
        for key in dict.fromkeys(key for of_arm in of_arms for key in of_arm):
            rows[f"{before}{key}"] = [of_arm.get(key) for of_arm in of_arms]
    shown = table("Seeds pooled, with 95% intervals over seeds and tasks", rows, [arm.name for arm in arms])
    if not findings:
        return shown
    found = [f"{metric}: {words}" for arm in arms for metric, words in arm.findings.items()]
    return "\n".join([shown, *found, ""]) if found else shown


def _cell(value: Any, key: str = "") -> str:
    """`key`: the key of the row. It ends with the name of the metric."""
    if value is None:
        return "-"
    if isinstance(value, dict) and {"value", "low", "high"} <= value.keys():
        return _interval(value, key.rpartition("/")[2])
    if isinstance(value, float):
        return f"{value:.6g}"
    return (value if isinstance(value, str) else json.dumps(value, default=str)).replace("|", "\\|").replace("\n", " ")


def _interval(value: Mapping[str, Any], metric: str) -> str:
    if "won" in value:
        return in_words(value, metric)
    scale = scale_of(metric)
    low, high = (scale.number(value[key]) for key in ("low", "high"))
    each = value.get("of_seeds", ())
    spread = f", seeds {scale.number(min(each))} to {scale.number(max(each))}" if len(each) > 1 else ""
    return f"{scale.shown(value['value'])} [{low}, {high}] n={value.get('n', '?')}{spread}"
