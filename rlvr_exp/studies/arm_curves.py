"""A metric of runs by arm and step, as means over seeds: what studies of arms show beside their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlvr_exp.core.statistics import Estimate, t_interval
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.studies.study import Findings, Run


def with_curves(found: Findings, runs: Sequence[Run], name: str, metric: str, unit: str) -> Findings:
    """The findings with a table and, where a run has the metric, a plot of that name."""
    means = mean_curves(runs, metric)
    rows = [
        {"arm": arm, "step": step, **value._asdict()} for arm, steps in means.items() for step, value in steps.items()
    ]
    lines = [Curve(arm, [*steps.items()], dots=False) for arm, steps in means.items()]
    drawn = {name: curves("Mean over seeds", lines, "step", unit)} if rows else {}
    return replace(found, tables={**found.tables, name: rows}, plots={**found.plots, **drawn})


def mean_curves(runs: Sequence[Run], metric: str) -> Mapping[str, Mapping[int, Estimate]]:
    """By arm and step of the completed runs, with the interval over seeds."""
    each: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        for row in read_metrics(run.directory) if run.completed else ():
            if (value := row.get(metric)) is not None:
                each.setdefault(run.job.arm, {}).setdefault(int(row["step"] or 0), []).append(value)
    return {arm: {step: t_interval(of) for step, of in steps.items()} for arm, steps in each.items()}
