"""Learning curves: success by the size of the training data, a point for each size and seed, with a power law.

The law is of failures: 1 - success = scale * size^exponent, by least squares of the logarithms (see power_law), as in
Hestness et al. 2017 (arXiv:1712.00409) without their constant, which takes more sizes than a study has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.study import SIZE
from rlvr_exp.core.statistics import Estimate, power_law, t_interval
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.runs.comparison import arm_values, undecidable, used
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import Findings, Study

FEWEST = 3
"""Sizes that a law needs: two always lie on one."""


class LearningCurve(options.LearningCurve, Study):
    def jobs(self) -> list[Job]:
        return [
            job
            for size in self.sizes
            for job in self.arm(str(size), [word.replace(SIZE, str(size)) for word in self.varied])
        ]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        arms = arm_values(runs, self.metric)
        points = [self._point(run) for run in runs if run.job.seed in arms.get(run.job.arm, {})]
        means = [
            (size, t_interval([one["success"] for one in points if one["size"] == size]))
            for size in self._sizes(points)
        ]
        law = _law(points)
        answer = _other_tasks(arms) + [undecidable(arms) or self._sentence(law)]
        drawn = [Curve("measured, with 95% intervals over seeds", means, line=False)]
        if law is not None:
            fitted = [(size, 1 - law[0] * size ** law[1].value) for size, _ in means]
            drawn.append(Curve("power law", [(size, Estimate(y, y, y)) for size, y in fitted], dots=False))
        plot = curves("Learning curve", drawn, f"{self.counted}, on a logarithmic axis", self.metric, log=True)
        fit = (
            [] if law is None else [{"scale": law[0], "exponent": law[1].value, "low": law[1].low, "high": law[1].high}]
        )
        return Findings(answer, {"curve": points, **({"law": fit} if fit else {})}, {"curve": plot})

    def _point(self, run: Run) -> Mapping[str, Any]:
        success = run.summary["after"][self.metric]["value"]
        counts = {"steps": run.summary["steps"], "rollouts": used(run.directory, "rollouts")}
        return {"size": int(run.job.arm), "seed": run.job.seed, "success": success, **counts}

    def _sizes(self, points: Sequence[Mapping[str, Any]]) -> list[int]:
        return [size for size in self.sizes if any(one["size"] == size for one in points)]

    def _sentence(self, law: tuple[float, Estimate] | None) -> str:
        if law is None:
            return (
                f"Cannot tell how success grows: a law needs {FEWEST} sizes, and success that is below 100% in all runs and "
                "not the same in all."
            )
        exponent = law[1]
        interval = f"{exponent.value:.3f} [{exponent.low:.3f}, {exponent.high:.3f}]"
        if exponent.low <= 0 <= exponent.high:
            return f"Cannot tell whether more {self.counted} change success: failures go as their number to the power {interval}."
        factor = 2**exponent.value
        return (
            f"Failures go as the number of {self.counted} to the power {interval}: twice as many leave {factor:.0%} of them "
            f"[{2**exponent.low:.0%}, {2**exponent.high:.0%}]."
        )


def _law(points: Sequence[Mapping[str, Any]]) -> tuple[float, Estimate] | None:
    """None where it cannot be drawn: too few sizes, runs without failures, whose logarithm is none, or failures that are all
    alike, whose spread is none."""
    failures = [1 - one["success"] for one in points]
    if len({one["size"] for one in points}) < FEWEST or min(failures) <= 0 or min(failures) == max(failures):
        return None
    return power_law([one["size"] for one in points], failures)


def _other_tasks(arms: Mapping[str, Mapping[int, Mapping[str, float]]]) -> list[str]:
    """A sentence where sizes were not measured on the same tasks: then their points do not compare."""
    measured = {frozenset(values) for seeds in arms.values() for values in seeds.values()}
    if len(measured) == 1:
        return []
    return [
        "Not all sizes were measured on the same tasks: a limit of the data below the split that is measured cuts "
        "that, too."
    ]
