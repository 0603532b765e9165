"""Arms of models trained from scratch: a row for each with its size, what it used up and how well it does, and each against
the first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.evaluation.paired import FLOOR
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.studies.budget import used
from rlvr_exp.studies.compared import AGAINST_FIRST, compared
from rlvr_exp.studies.contrast import Values, arm_values, interval, judged, level, measured
from rlvr_exp.studies.study import Findings, Run

SUCCESS = "pass_at_1"
MODELS = "models"
"""The table with a row for each arm."""
Row = Mapping[str, Any]


def model_findings(runs: Sequence[Run], metric: str, equal: str) -> Findings:
    """Each arm against the first by the metric, then by success where some arm succeeds at all.

    Raises:
        InputError: no run was measured by the metric.
    """
    found = compared(runs, runs[0].job.arm, metric, equal, AGAINST_FIRST)
    answer = [*found.answer, *(_success(runs) if metric != SUCCESS else ())]
    return replace(found, answer=answer, tables={MODELS: model_rows(runs, metric), **found.tables})


def model_rows(runs: Sequence[Run], metric: str) -> list[Row]:
    """A row for each arm that was measured: means over its runs, rates with 95% intervals over seeds and tasks."""
    by_metric = {name: arm_values(runs, name) for name in dict.fromkeys((metric, SUCCESS)) if _some(runs, name)}
    rows: list[Row] = []
    for arm, values in by_metric[metric].items():
        own = [run for run in runs if run.completed and run.job.arm == arm]
        row: dict[str, Any] = {"arm": arm, "runs": len(own), "parameters": parameters(own[0])}
        row |= {f"training_{kind}": fmean(used(run.directory, kind) for run in own) for kind in ("tokens", "seconds")}
        row |= _estimates(metric, values)
        row |= (
            _estimates(SUCCESS, by_metric[SUCCESS][arm])
            if metric != SUCCESS and arm in by_metric.get(SUCCESS, {})
            else {}
        )
        rows.append(row | _tokens_a_task(own[0]))
    return rows


def parameters(run: Run) -> int:
    """Of its model; 0 where its manifest does not say."""
    return int(manifest.section(run.directory, "model").get("total", 0))


def _some(runs: Sequence[Run], metric: str) -> bool:
    return any(measured(run, metric) for run in runs)


def _estimates(metric: str, values: Values) -> dict[str, float | int]:
    mean, low, high = interval(values, metric)
    tasks = len(judged([*values.values()]))
    return {metric: mean, f"{metric}/low": low, f"{metric}/high": high, f"{metric}/tasks": tasks}


def _tokens_a_task(run: Run) -> dict[str, float]:
    """Mean over the measured tasks of the tokens of prompt and gold; nothing where golds were not measured."""
    golds = {one.completion.task.id: (one.about or {}).get("gold") for one in read_evaluation(run.directory, "after")}
    counts = [gold["prompt_tokens"] + gold["tokens"] for gold in golds.values() if gold]
    return {"tokens_a_task": fmean(counts)} if counts else {}


def _success(runs: Sequence[Run]) -> Iterator[str]:
    if not _some(runs, SUCCESS):
        return
    levels = {arm: level(values) for arm, values in arm_values(runs, SUCCESS).items()}
    best = max(levels, key=levels.__getitem__)
    if levels[best] <= FLOOR:
        yield f"Success does not count: no arm exceeds {FLOOR:.0%} ({SUCCESS} of {best} {levels[best]:.1%})."
        return
    for sentence in compared(runs, runs[0].job.arm, SUCCESS, "none", AGAINST_FIRST).answer:
        yield f"By {SUCCESS}: {sentence}"
