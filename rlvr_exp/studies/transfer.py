"""What training on one group of tasks does to success on each other one, and whether it does more the more alike they are.

A gain is the success of the policy that was trained on A on the tasks of B, minus that of the initial policy on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.evaluation.arms import BEFORE
from rlvr_exp.report.plots import Curve, Drawing, curves, intervals
from rlvr_exp.studies.contrast import (
    Contrast,
    Values,
    arm_values,
    difference_in_words,
    gain_row,
    paired_contrasts,
    points,
    undecidable,
)
from rlvr_exp.studies.measured import MeasuredStudy
from rlvr_exp.studies.overlap import overlaps
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run
from rlvr_exp.studies.transfer_likeness import KINDS, Likeness, correlations, likeness

OF_PROMPTS = ("model", "data", "role")
"""Nodes of the words that an embedding depends on; those of training and measuring have no effect on it."""
OWN, OTHERS = "on the group that was trained on", "on other groups"
Pair = tuple[str, str]
"""The group that was trained on, and the one that was measured."""


class Transfer(options.Transfer, MeasuredStudy, ArmStudy):
    def trainings(self) -> list[Job]:
        return self.arm_jobs()

    def others(self) -> list[Job]:
        """Where the initial policy puts the tasks of each group, which depends on no seed."""
        if not self.embed:
            return []
        asking = replace(self, words=[word for word in self.words if word.lstrip("+").startswith(OF_PROMPTS)])
        jobs = (asking.arm(_embedded(name), words, self.seeds[:1], self.embed) for name, words in self._groups.items())
        return [job for of in jobs for job in of]

    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        return [
            job
            for name, words in self._groups.items()
            if name != training.arm
            for job in self.measure_arm(_arm(training.arm, name), [*words, *self.policy(checkpoint)], [training.seed])
        ]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        trained = [run for run in runs if run.job.arm in self._groups and run.completed]
        if not trained or any(self.metric not in (run.summary.get(BEFORE) or {}) for run in trained):
            return Findings(["Cannot tell: no group was measured both before training and after it."])
        after, before = arm_values(runs, self.metric), arm_values(trained, self.metric, BEFORE)
        names = {(one, other): _arm(one, other) for one in before for other in before}
        sides = {pair: (after[name], before[pair[1]]) for pair, name in names.items() if name in after}
        found = paired_contrasts({names[pair]: both for pair, both in sides.items()}, self.metric)
        gains = {pair: found[names[pair]] for pair in sides if names[pair] in found}
        names_of = {_embedded(name): name for name in self._groups}
        embedded = {names_of[run.job.arm]: run for run in runs if run.job.arm in names_of and run.completed}
        alike = likeness(trained, self.compared, embedded)
        related = correlations({pair: one.value.value for pair, one in gains.items() if _other(pair)}, alike)
        ends = undecidable({**after, **{f"{name} before": one for name, one in before.items()}})
        answer = [ends] if ends else _in_words(gains, paired_contrasts(_pooled(sides, self._sets), self.metric))
        tables = {"gains": [_row(pair, one, alike) for pair, one in gains.items()], "correlation": related.rows}
        return Findings(
            [*answer, *overlaps(trained), *related.sentences],
            {name: rows for name, rows in tables.items() if rows},
            _drawn(gains, alike, self.metric),
        )

    @property
    def _sets(self) -> dict[str, str]:
        """By group, the words that name its data, whatever they take of them."""
        named = ("data=", "data.path=")
        return {
            name: " ".join(word for word in words if word.startswith(named)) for name, words in self._groups.items()
        }

    @property
    def _groups(self) -> dict[str, list[str]]:
        return {name: words for name, words in self.arms.items() if not self.only or name in self.only}


def _arm(trained: str, measured: str) -> str:
    """The arm that measures a group after training on one: on its own a training does it itself."""
    return trained if trained == measured else f"{trained}_on_{measured}"


def _embedded(group: str) -> str:
    """The arm that measures where a group's tasks lie."""
    return f"{group}_embedded"


def _other(pair: Pair) -> bool:
    return pair[0] != pair[1]


def _pooled(sides: Mapping[Pair, tuple[Values, Values]], sets: Mapping[str, str]) -> dict[str, tuple[Values, Values]]:
    """After and before on all groups: by the policy of the own group, and by the mean of those of all others. A task that
    several groups of one set have, such as in several looks, is one task by its mean."""
    of_task: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
    for pair, (after, before) in sides.items():
        for seed in (seed for seed in after if seed in before):
            for task in (task for task in after[seed] if task in before[seed]):
                place = OTHERS if _other(pair) else OWN, seed, f"{sets[pair[1]]} {task}"
                of_task.setdefault(place, []).append((after[seed][task], before[seed][task]))
    found: dict[str, tuple[dict[int, dict[str, float]], dict[int, dict[str, float]]]] = {}
    for (where, seed, task), values in of_task.items():
        for side, of_side in zip(found.setdefault(where, ({}, {})), zip(*values, strict=True), strict=True):
            side.setdefault(seed, {})[task] = fmean(of_side)
    return {**found}


def _in_words(gains: Mapping[Pair, Contrast], pooled: Mapping[str, Contrast]) -> list[str]:
    others = [one for pair, one in gains.items() if _other(pair)]
    helped, harmed = (sum(one.sure and one.value.value * sign > 0 for one in others) for sign in (1, -1))
    counted = f"Of {len(others)} pairs of different groups training helps {helped} and harms {harmed} beyond chance."
    return [counted, *(difference_in_words(f"Gain {where}", one) for where, one in pooled.items())]


def _row(pair: Pair, one: Contrast, alike: Likeness) -> dict[str, Any]:
    like = {f"likeness_{kind}": share for kind, share in alike.of(*pair).items()}
    return {"trained_on": pair[0], "measured_on": pair[1], **gain_row(one), **like}


def _drawn(gains: Mapping[Pair, Contrast], alike: Likeness, metric: str) -> dict[str, Drawing]:
    if not gains:
        return {}
    title, unit = f"{metric}: gain by training", "points, with 95% intervals over seeds and tasks"
    plots = {"gains": intervals(title, {f"{one} on {other}": points(of) for (one, other), of in gains.items()}, unit)}
    others = {pair: one for pair, one in gains.items() if _other(pair)}
    drawn = [
        Curve(kind, [(alike.of(*pair)[kind], points(one)) for pair, one in others.items()], line=False)
        for kind in KINDS
        if all(kind in alike.of(*pair) for pair in others)
    ]
    return plots | (
        {"likeness": curves("Transfer", drawn, "likeness of the two groups", "gain in points")} if others else {}
    )
