"""Sample complexity: the number of rollouts before a run's curve first reaches a success rate.

The best value so far counts, so the number never falls as the target rises.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.statistics import LEVEL, Estimate, t_interval
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.runs.comparison import sampled
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import ArmStudy, Findings

Counts = Mapping[str, Mapping[Any, Mapping[float, float]]]
"""Rollouts by arm, seed and target."""


class SampleComplexity(options.SampleComplexity, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        metrics = {run.job.name: read_metrics(run.directory) for run in runs if run.completed}
        if not any(self.curve in row for of_run in metrics.values() for row in of_run):
            known = sorted({name for of_run in metrics.values() for row in of_run for name in row if "success" in name})
            remedy = "run.select.every_steps=N among study.words, or study.curve=NAME"
            raise InputError(InputProblem("study.curve", "no run has it", self.curve, ", ".join(known), "", remedy))
        reached = {name: self._reached(of_run) for name, of_run in metrics.items()}
        rows = [self._row(arm, target, runs, reached) for arm in _arms(runs) for target in self.targets]
        points: dict[str, list[tuple[float, Estimate]]] = {}
        for row in rows:
            if "rollouts" in row:
                value = Estimate(row["rollouts"], row["low"], row["high"])
                points.setdefault(row["arm"], []).append((row["target"], value))
        drawn = [Curve(arm, of) for arm, of in points.items()]
        plots = {"rollouts": curves("Rollouts to a target", drawn, self.curve, "rollouts")} if drawn else {}
        headline = self._headline(rows, _by_seed(runs, reached))
        return Findings([headline, *map(_sentence, rows)], {"rollouts": rows}, plots)

    def _reached(self, rows: Sequence[Row]) -> Mapping[float, float]:
        """Rollouts before each target that was reached."""
        spent = list(accumulate(sampled(row) for row in rows))
        values = [
            (used, value) for used, row in zip(spent, rows, strict=True) if (value := row.get(self.curve)) is not None
        ]
        best = list(accumulate((value for _, value in values), max))
        first = {
            target: next((used for (used, _), so_far in zip(values, best, strict=True) if so_far >= target), None)
            for target in self.targets
        }
        return {target: used for target, used in first.items() if used is not None}

    def _row(
        self, arm: str, target: float, runs: Sequence[Run], reached: Mapping[str, Mapping[float, float]]
    ) -> Mapping[str, Any]:
        own = [reached[run.job.name] for run in runs if run.job.arm == arm and run.job.name in reached]
        counts = [of_run[target] for of_run in own if target in of_run]
        row = {"arm": arm, "target": target, "seeds": len(own), "reached": len(counts)}
        if not own or len(counts) < len(own):  # A mean of those that did would be too low.
            return row
        mean, low, high = t_interval(counts)
        return row | {"rollouts": mean, "low": low, "high": high}

    def _headline(self, rows: Sequence[Mapping[str, Any]], counts: Counts) -> str:
        """The highest target that an arm reached with all of its seeds that completed, and which arm was there first."""
        known = [row for row in rows if "rollouts" in row]
        if not known:
            return f"Cannot tell: no arm reached {self.targets[0]:.0%} with all of its seeds that completed."
        highest = max(row["target"] for row in known)
        rivals = sorted((row for row in known if row["target"] == highest), key=lambda row: row["rollouts"])
        text = f"{highest:.0%} takes {rivals[0]['arm']} {_range(rivals[0])} rollouts"
        if len(rivals) < 2:
            return f"{text}; no other arm reaches it with all of its seeds that completed."
        sure, few = _fewer(counts, highest, [row["arm"] for row in rivals])
        how = "fewer than" if sure else "cannot tell whether fewer than"
        return f"{text}: {how} {rivals[1]['arm']}, {_range(rivals[1])}{few}."


def _by_seed(runs: Sequence[Run], reached: Mapping[str, Mapping[float, float]]) -> Counts:
    found: dict[str, dict[Any, Mapping[float, float]]] = {}
    for run in runs:
        if run.job.name in reached:
            found.setdefault(run.job.arm, {})[run.job.seed] = reached[run.job.name]
    return found


def _fewer(counts: Counts, target: float, arms: Sequence[str]) -> tuple[bool, str]:
    """Whether the first arm takes fewer rollouts than the second beyond chance, by Student's t of the differences of their
    common seeds, corrected for all other arms; and what has to be said of so few seeds."""
    from scipy import stats

    first, others = counts[arms[0]], [counts[arm] for arm in arms[1:]]
    p, seeds = list[float](), list[int]()
    for other in others:
        more = [other[seed][target] - first[seed][target] for seed in first if seed in other]
        told = len(set(more)) > 1  # Equal ones have no spread to tell them from chance by.
        p.append(float(stats.ttest_1samp(more, 0.0).pvalue) if told else 1.0)
        seeds.append(len(more))
    return holm(p)[0] <= LEVEL, of_few_seeds(seeds[0], "such a figure")


def _arms(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.job.arm for run in runs))


def _range(row: Mapping[str, Any]) -> str:
    """With the interval over seeds, which one seed has not."""
    interval = f" [{max(0.0, row['low']):,.0f}, {row['high']:,.0f}]" if row["seeds"] > 1 else ""
    return f"{row['rollouts']:,.0f}{interval}"


def _sentence(row: Mapping[str, Any]) -> str:
    took = f"{_range(row)} rollouts" if "rollouts" in row else f"reached by {row['reached']} of {row['seeds']} seeds"
    return f"{row['arm']}, {row['target']:.0%}: {took}."
