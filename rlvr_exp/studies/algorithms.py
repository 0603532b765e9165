"""Which algorithm learns most from an equal budget: success of each against the first, and how entropy goes meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlvr_exp.config import study as options
from rlvr_exp.core.statistics import Estimate, t_interval
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.drawing import Drawing
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.studies.compared import Wording, compared
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run

DIFFERENCE = Wording("difference", "minus the first algorithm", "better", "worse")
ENTROPY = "entropy"


class Algorithms(options.Algorithms, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found, entropy = compared(runs, runs[0].job.arm, self.metric, self.equal, DIFFERENCE), _entropy(runs)
        rows = [
            {"arm": arm, "step": step, **value._asdict()}
            for arm, steps in entropy.items()
            for step, value in steps.items()
        ]
        drawn = {"entropy": _drawn(entropy)} if rows else {}
        return replace(found, tables={**found.tables, "entropy": rows}, plots={**found.plots, **drawn})


def _entropy(runs: Sequence[Run]) -> dict[str, dict[int, Estimate]]:
    """Mean token entropy by arm and step, with the interval over seeds."""
    each: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        for row in read_metrics(run.directory) if run.completed else ():
            if (value := row.get(ENTROPY)) is not None:
                each.setdefault(run.job.arm, {}).setdefault(int(row["step"] or 0), []).append(value)
    return {arm: {step: t_interval(of) for step, of in steps.items()} for arm, steps in each.items()}


def _drawn(entropy: Mapping[str, Mapping[int, Estimate]]) -> Drawing:
    lines = [Curve(arm, [*steps.items()], dots=False) for arm, steps in entropy.items()]
    return curves("Mean over seeds", lines, "step", "entropy of a token, nats")
