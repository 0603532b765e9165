"""Measure a policy on held-out tasks: greedy and sampled pass@k with intervals, reasons for failure, latency; with
`evaluate.baseline=RUN` also the difference to what that run measured last, paired task by task."""

from pathlib import Path

from rlvr_exp.evaluation.metrics import METRICS, Scored, latency, task_values, verdict_counts
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import load
from rlvr_exp.run.job import Job, Result
from rlvr_exp.stages.setup import measured, prepared


def run(config, job: Job) -> Result:
    # Read first: a baseline that is not there is told before any work.
    baseline = load(Path(config.evaluate.baseline), "after") if config.evaluate.baseline else []
    with prepared(config, job) as parts:
        rates = measured(parts, config, job, "after")
    scored = load(job.directory, "after")
    metrics = {f"verdict/{name}": count / len(scored) for name, count in verdict_counts(scored).items() if count}
    metrics |= {f"time/answer_{name}": seconds for name, seconds in latency(scored).items()}
    if baseline:
        metrics |= _differences(baseline, scored)
    return Result(before={}, after=rates, metrics=metrics, steps=0)


def _differences(baseline: list[Scored], scored: list[Scored]) -> dict[str, dict[str, float | int]]:
    """For each metric that both sides have: this run minus the baseline."""
    return {
        f"difference/{metric}": paired(baseline, scored, metric, "evaluate.baseline").to_dict()
        for metric in METRICS
        if task_values(baseline, metric) and task_values(scored, metric)
    }
