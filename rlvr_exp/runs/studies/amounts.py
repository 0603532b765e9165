"""Studies of success by an amount: the size of the training data, the rollouts until a target, the solved examples in a prompt.

A learning curve has a point for each size and seed, and a power law of failures: 1 - success = scale * size^exponent, by least
squares of the logarithms (see power_law), as in Hestness et al. 2017 (arXiv:1712.00409) without their constant, which takes
more sizes than a study has.

The sample complexity is the number of rollouts before a run's curve first reaches a success rate. The best value so far counts,
so the number never falls as the target rises.

Few-shot prompts compare one policy, paired by task.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.study import SIZE
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import scale_of
from rlvr_exp.core.statistics import LEVEL, Estimate, power_law, t_interval
from rlvr_exp.evaluation.arms import AFTER
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.runs.comparison import (
    Contrast,
    arm_values,
    contrasts,
    difference_in_words,
    difference_row,
    interval,
    level,
    sampled,
    shares,
    undecidable,
    used,
)
from rlvr_exp.runs.study import ArmStudy, Findings, Job, JobRun, Study
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG

FEWEST = 3
"""Sizes that a law needs: two always lie on one."""


class LearningCurve(options.LearningCurve, Study):
    def jobs(self) -> list[Job]:
        words = {str(size): [word.replace(SIZE, str(size)) for word in self.varied] for size in self.sizes}
        return [job for name, own in words.items() for job in self.arm(name, own)]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        arms = arm_values(runs, self.metric)
        points: list[dict[str, Any]] = [
            {
                "size": int(run.job.arm),
                "seed": run.job.seed,
                "success": scale_of(self.metric).share(run.summary["after"][self.metric]["value"]),
                "steps": run.summary["steps"],
                "rollouts": used(run.directory, "rollouts"),
            }
            for run in runs
            if run.job.seed in arms.get(run.job.arm, {})
        ]
        of_size = {size: [one["success"] for one in points if one["size"] == size] for size in self.sizes}
        means = [(size, t_interval(values)) for size, values in of_size.items() if values]
        drawn = [Curve("measured, with 95% intervals over seeds", means, line=False)]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"curve": points}
        # A law needs enough sizes; a run without failures has no logarithm of them, and equal failures no spread.
        failures, law = [1 - one["success"] for one in points], None
        if len(means) >= FEWEST and 0 < min(failures) < max(failures):
            law = power_law([one["size"] for one in points], failures)
            fitted = [(size, 1 - law[0] * size ** law[1].value) for size, _ in means]
            drawn.append(Curve("power law", [(size, Estimate(y, y, y)) for size, y in fitted], dots=False))
            tables["law"] = [{"scale": law[0], "exponent": law[1].value, "low": law[1].low, "high": law[1].high}]
        answer = [undecidable(arms) or self._sentence(law[1] if law else None)]
        if len({frozenset(values) for seeds in arms.values() for values in seeds.values()}) > 1:
            answer.insert(
                0,
                "Not all sizes were measured on the same tasks: a limit of the data below the split that is measured cuts "
                "that, too.",
            )
        plot = curves(
            "Learning curve",
            drawn,
            f"{self.counted}, on a logarithmic axis",
            self.metric,
            True,
            scale_of(self.metric).bounded,
        )
        return Findings(answer, tables, {"curve": plot})

    def _sentence(self, exponent: Estimate | None) -> str:
        if exponent is None:
            return (
                f"Cannot tell how success grows: a law needs {FEWEST} sizes, and success that is below 100% in all runs and "
                "not the same in all."
            )
        interval = f"{exponent.value:.3f} [{exponent.low:.3f}, {exponent.high:.3f}]"
        if exponent.low <= 0 <= exponent.high:
            return f"Cannot tell whether more {self.counted} change success: failures go as their number to the power {interval}."
        return (
            f"Failures go as the number of {self.counted} to the power {interval}: twice as many leave "
            f"{2**exponent.value:.0%} of them [{2**exponent.low:.0%}, {2**exponent.high:.0%}]."
        )


class SampleComplexity(options.SampleComplexity, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        metrics = {run.job: read_metrics(run.directory) for run in runs if run.completed}
        if not any(self.curve in row for of_run in metrics.values() for row in of_run):
            known = sorted({name for of_run in metrics.values() for row in of_run for name in row if "success" in name})
            remedy = "run.select.every_steps=N among study.words, or study.curve=NAME"
            raise InputError(InputProblem("study.curve", "no run has it", self.curve, ", ".join(known), "", remedy))
        reached: dict[str, dict[Any, Mapping[float, float]]] = {run.job.arm: {} for run in runs}
        for job, of_run in metrics.items():
            reached[job.arm][job.seed] = self._reached(of_run)
        rows = [_row(arm, target, of_arm) for arm, of_arm in reached.items() for target in self.targets]
        points: dict[str, list[tuple[float, Estimate]]] = {}
        for row in rows:
            if "rollouts" in row:
                value = Estimate(row["rollouts"], row["low"], row["high"])
                points.setdefault(row["arm"], []).append((row["target"], value))
        drawn = [Curve(arm, of) for arm, of in points.items()]
        plots = {"rollouts": curves("Rollouts to a target", drawn, self.curve, "rollouts")} if drawn else {}
        sentences = [
            f"{row['arm']}, {row['target']:.0%}: "
            + (
                f"{_range(row)} rollouts."
                if "rollouts" in row
                else f"reached by {row['reached']} of {row['seeds']} seeds."
            )
            for row in rows
        ]
        return Findings([self._headline(rows, reached), *sentences], {"rollouts": rows}, plots)

    def _reached(self, rows: Sequence[Row]) -> Mapping[float, float]:
        """Rollouts before each target that was reached."""
        spent, found, left = accumulate(sampled(row) for row in rows), dict[float, float](), sorted(self.targets)
        for used_so_far, row in zip(spent, rows, strict=True):
            while left and (value := row.get(self.curve)) is not None and value >= left[0]:
                found[left.pop(0)] = used_so_far
        return found

    def _headline(
        self, rows: Sequence[Mapping[str, Any]], reached: Mapping[str, Mapping[Any, Mapping[float, float]]]
    ) -> str:
        """The highest target that an arm reached with all of its seeds that completed, and which arm was there first."""
        known = [row for row in rows if "rollouts" in row]
        if not known:
            return f"Cannot tell: no arm reached {self.targets[0]:.0%} with all of its seeds that completed."
        highest = max(row["target"] for row in known)
        rivals = sorted((row for row in known if row["target"] == highest), key=lambda row: row["rollouts"])
        text = f"{highest:.0%} takes {rivals[0]['arm']} {_range(rivals[0])} rollouts"
        if len(rivals) < 2:
            return f"{text}; no other arm reaches it with all of its seeds that completed."
        sure, few = _fewer([{seed: of[highest] for seed, of in reached[row["arm"]].items()} for row in rivals])
        how = "fewer than" if sure else "cannot tell whether fewer than"
        return f"{text}: {how} {rivals[1]['arm']}, {_range(rivals[1])}{few}."


def _row(arm: str, target: float, of_seeds: Mapping[Any, Mapping[float, float]]) -> dict[str, Any]:
    counts = [of_run[target] for of_run in of_seeds.values() if target in of_run]
    row = {"arm": arm, "target": target, "seeds": len(of_seeds), "reached": len(counts)}
    if not counts or len(counts) < len(of_seeds):  # A mean of those that reached it would be too low.
        return row
    return row | dict(zip(("rollouts", "low", "high"), t_interval(counts), strict=True))


def _range(row: Mapping[str, Any]) -> str:
    """With the interval over seeds, which one seed does not have."""
    interval = f" [{max(0.0, row['low']):,.0f}, {row['high']:,.0f}]" if row["seeds"] > 1 else ""
    return f"{row['rollouts']:,.0f}{interval}"


def _fewer(counts: Sequence[Mapping[Any, float]]) -> tuple[bool, str]:
    """Whether the first arm takes fewer rollouts than the second beyond chance, and a warning of few seeds.

    By Student's t of the differences of their common seeds, corrected for all other arms.
    """
    from scipy import stats

    p, seeds = list[float](), list[int]()
    for other in counts[1:]:
        more = [other[seed] - counts[0][seed] for seed in counts[0] if seed in other]
        varied = len(set(more)) > 1  # Equal differences have no spread.
        p.append(float(stats.ttest_1samp(more, 0.0).pvalue) if varied else 1.0)
        seeds.append(len(more))
    return holm(p)[0] <= LEVEL, of_few_seeds(seeds[0], "such a figure")


class FewShot(options.FewShot, Study):
    def jobs(self) -> list[Job]:
        return [job for count in self.shots for job in self.arm(f"shots_{count}", [f"data.prompt.shots={count}"])]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        arms = arm_values(runs, self.metric)
        counts = [count for count in self.shots if f"shots_{count}" in arms]
        best, first = max(counts, key=lambda count: level(arms[f"shots_{count}"])), counts[0]
        against_best, against_first = (
            {
                int(name.removeprefix("shots_")): one
                for name, one in contrasts(arms, f"shots_{count}", self.metric).items()
            }
            for count in (best, first)
        )
        rows, answer, points = list[dict[str, Any]](), list[str](), list[tuple[float, Estimate]]()
        for count in counts:
            points.append((count, interval(arms[f"shots_{count}"], self.metric)))
            row = {"shots": count, **shares(points[-1][1], self.metric)}
            if one := against_first.get(count):
                row |= difference_row(one, self.metric)
                answer.append(difference_in_words(f"{count} shots against {first}", one))
            elif count != first:
                answer.append(f"{count} shots: not measured on the tasks and seeds of {first} shots.")
            of_task = {
                one.completion.task.id: one.verdict.bucket == PROMPT_TOO_LONG
                for run in runs
                if run.completed and run.job.arm == f"shots_{count}"
                for one in read_evaluation(run.directory, AFTER)
            }
            rows.append(row | {"tasks": len(of_task), "prompt_too_long": sum(of_task.values())})
        answer.insert(0, undecidable(arms) or self._headline(counts, best, level(arms[f"shots_{best}"]), against_best))
        if long := [
            f"{row['prompt_too_long']} of {row['tasks']} with {row['shots']} shots"
            for row in rows
            if row["prompt_too_long"]
        ]:
            remedy = "which count as failures; model.max_prompt_tokens says what is taken"
            answer.insert(0, f"Prompts are too long for the policy: {', '.join(long)}, {remedy}.")
        drawn = Curve("with 95% intervals over seeds and tasks", points)
        plot = curves(
            "Few-shot", [drawn], "solved examples in the prompt", self.metric, percent=scale_of(self.metric).bounded
        )
        return Findings(answer, {"shots": rows}, {"shots": plot})

    def _headline(self, counts: Sequence[int], best: int, success: float, against: Mapping[int, Contrast]) -> str:
        """The smallest number that is not surely worse than the best."""
        highest = f"{self.metric} is highest with {best} shots, {success:.1%}"
        if best == counts[0]:
            return f"{highest}, the fewest that were measured."
        less = [count for count in counts if count < best]
        fewest = next((n for n in less if n in against and not (against[n].sure and against[n].value.value < 0)), None)
        if fewest is None:
            lost = ", ".join(str(count) for count in less if count not in against)
            unknown = f", of those measured on its tasks and seeds (not {lost})" if lost else ""
            return f"{highest}; every smaller number is worse beyond chance{unknown}."
        seen = f"a loss of {100 * against[fewest].value.smallest:.1f} points would have been found in 80 of 100 such studies"
        return f"{highest}; {fewest} are the fewest that no loss against it was found for ({seen})."
