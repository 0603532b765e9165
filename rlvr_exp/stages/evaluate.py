"""Measure a policy on held-out tasks: greedy and sampled pass@k with intervals, reasons for failure, latency; with
`evaluate.baseline=RUN` also the difference to what that run measured last, paired task by task."""

from dataclasses import fields
from pathlib import Path

from rlvr_exp.config import load as load_config
from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.evaluation.metrics import METRICS, Scored, latency, task_values, verdict_counts
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import load
from rlvr_exp.run.job import Job, Result
from rlvr_exp.stages.setup import measured, prepared


def run(config, job: Job) -> Result:
    baseline = _baseline(config) if config.evaluate.baseline else []
    with prepared(config, job) as parts:
        rates = measured(parts, config, job, "after")
    scored = load(job.directory, "after")
    metrics = {f"verdict/{name}": count / len(scored) for name, count in verdict_counts(scored).items() if count}
    metrics |= {f"time/answer_{name}": seconds for name, seconds in latency(scored).items()}
    if baseline:
        metrics |= _differences(baseline, scored)
    return Result(before={}, after=rates, metrics=metrics, steps=0)


def _baseline(config) -> list[Scored]:
    """What the baseline measured last; read first, so that one that does not fit is told before any work.

    Raises:
        InputError: it is not there, or was measured in another way, so that a difference would not be the policy's.
    """
    directory = Path(config.evaluate.baseline)
    other = load_config(directory / "config.yaml")
    pairs = {f"evaluation.{field.name}": field.name for field in fields(config.evaluation) if field.name != "batch_size"}
    differing = [
        Problem("evaluate.baseline", f"{key} differs", f"{theirs} there, {ours} here", remedy=f"{key}={theirs}")
        for key, name in pairs.items()
        if (theirs := getattr(other.evaluation, name)) != (ours := getattr(config.evaluation, name))
    ]
    if differing:
        raise InputError(*differing)
    return load(directory, "after")


def _differences(baseline: list[Scored], scored: list[Scored]) -> dict[str, dict[str, float | int]]:
    """For each metric that both sides have: this run minus the baseline."""
    return {
        f"difference/{metric}": paired(baseline, scored, metric, "evaluate.baseline").to_dict()
        for metric in METRICS
        if task_values(baseline, metric) and task_values(scored, metric)
    }
