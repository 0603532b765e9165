"""Transfer: how training on one group of tasks changes success on each other group, and whether likeness predicts it.

A gain is the success on B of the policy trained on A, minus that of the initial policy. Likeness compares the training tasks
of two groups; its rank correlation with the gains is tested by permutations of the groups.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import mul
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.load import load
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.statistics import LEVEL, Permuted, mantel
from rlvr_exp.evaluation.arms import BEFORE
from rlvr_exp.evaluation.task_similarity import Profile, inputs, programs, similarity
from rlvr_exp.records.context import read_benchmark
from rlvr_exp.report.plots import Curve, Drawing, curves, intervals
from rlvr_exp.runs.comparison import (
    Contrast,
    Values,
    arm_values,
    difference_in_words,
    gain_row,
    paired_contrasts,
    points,
    undecidable,
)
from rlvr_exp.runs.lineage import TrainedTasks, trained_by
from rlvr_exp.runs.study import ArmStudy, Findings, Job, JobRun, MeasuredStudy

EMBEDDINGS = "embeddings"
KINDS = ("programs", "inputs", EMBEDDINGS)
"""Kinds of likeness."""
UNTOLD, EQUAL = "Cannot tell whether likeness of", "gains are all equal, or groups are all equally alike or without it"
FEWEST = 5
"""Fewest groups for a significant correlation: for each kind and side, one of n! permutations is as good."""


@dataclass(frozen=True)
class Likeness:
    """Profiles of the training tasks of each group by kind, and their embeddings under the initial policy."""

    profiles: Mapping[str, Mapping[str, Profile]]
    embeddings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def of(self, first: str, second: str) -> dict[str, float]:
        """Similarities of two groups by kind, if both have a profile. Without reference answers there is none of programs."""
        found = {
            kind: similarity(known[first], known[second])
            for kind, known in self.profiles.items()
            if known.get(first) and known.get(second)
        }
        if {first, second} <= {*self.embeddings}:
            found[EMBEDDINGS] = _in_direction(self.embeddings, first, second)
        return found


def _in_direction(embeddings: Mapping[str, Sequence[float]], first: str, second: str) -> float:
    """(1 + cosine) / 2 of two groups' directions from the mean of all groups, since similar prompts all lie close together."""
    centre = [fmean(values) for values in zip(*embeddings.values(), strict=True)]
    one, other = (
        [value - middle for value, middle in zip(embeddings[name], centre, strict=True)] for name in (first, second)
    )
    lengths = math.hypot(*one) * math.hypot(*other)
    return (1 + (sum(map(mul, one, other)) / lengths if lengths else 0.0)) / 2


def likeness(runs: Sequence[JobRun], most: int, embedded: Mapping[str, JobRun]) -> Likeness:
    """The likeness of the trained groups, by the first `most` tasks of each. Raises InputError if data have changed.

    Args:
        embedded: by group, the run that measured its embedding.
    """
    profiles: dict[str, dict[str, Profile]] = {kind: {} for kind in ("programs", "inputs")}
    for run in {run.job.arm: run for run in runs}.values():
        own = next(trained_by(load(run.directory / "config.yaml"), run.job.name, run.directory))
        if isinstance(own, TrainedTasks):
            tasks = own.tasks[:most]
            profiles["programs"][run.job.arm] = programs(tasks)
            profiles["inputs"][run.job.arm] = inputs(own.domain, tasks)
    measured = {name: read_benchmark(run.directory) for name, run in embedded.items()}
    return Likeness(profiles, {name: found["mean"] for name, found in measured.items()})


def correlations(gains: Mapping[tuple[str, str], float], alike: Likeness) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows and sentences on the correlation of gains and likeness over all pairs of different groups.

    Args:
        gains: by the trained and the measured group.
    """
    groups = list(dict.fromkeys(name for pair in gains for name in pair))
    if len(groups) < FEWEST or len(gains) < len(groups) * (len(groups) - 1):
        return [], [f"Cannot tell what likeness does: that takes {FEWEST} groups, all measured on each other."]
    found: dict[str, Permuted | None] = {}
    for kind in (kind for kind in KINDS if kind != EMBEDDINGS or alike.embeddings):
        likes = [[alike.of(one, other).get(kind, math.nan) for other in groups] for one in groups]
        ours = [[gains.get((one, other), 0.0) for other in groups] for one in groups]
        found[kind] = None if any(map(math.isnan, chain(*likes))) else mantel(likes, ours)
    known = {kind: one for kind, one in found.items() if one is not None}
    corrected = dict(zip(known, holm([one.p for one in known.values()]), strict=True))
    names = ("likeness", "spearman", "chance_low", "chance_high", "p_holm")
    rows = [
        dict(zip(names, (kind, one.value, one.low, one.high, corrected[kind]), strict=True))
        for kind, one in known.items()
    ]
    sentences = [
        _sentence(kind, one, corrected[kind], len(groups)) if one else f"{UNTOLD} {kind} matters: {EQUAL}."
        for kind, one in found.items()
    ]
    return rows, sentences


def _sentence(kind: str, one: Permuted, p: float, groups: int) -> str:
    said = f"rank correlation of gains with the likeness of {kind} {one.value:+.2f}, {groups} groups"
    chance = f"chance alone gives {one.low:+.2f} to {one.high:+.2f} in 95 of 100 permutations of the groups, p {p:.3f}"
    if p > LEVEL:
        return f"{UNTOLD} {kind} matters: {said}; {chance}."
    return (
        f"Training helps other groups {'more' if one.value > 0 else 'less'}, the more alike they are: {said}; {chance}."
    )


def overlaps(trained: Sequence[JobRun]) -> Iterator[str]:
    """A sentence for each pair of groups if held-out tasks of one group share content with the training tasks of the other. A
    run separates its own tasks.

    Raises:
        InputError: data have changed since a run.
    """
    learned, held_out = {}, {}
    for run in {run.job.arm: run for run in trained}.values():
        config = load(run.directory / "config.yaml")
        own = next(trained_by(config, run.job.name, run.directory))
        if isinstance(own, TrainedTasks):
            tasks = own.domain.splits().get(config.evaluation.split, ())
            learned[run.job.arm] = {key for task in own.tasks for key in own.domain.contents(task)}
            held_out[run.job.arm] = [own.domain.contents(task) for task in tasks]
    for group, tasks_of_it in held_out.items():
        for other, keys in learned.items():
            shared = sum(not keys.isdisjoint(contents) for contents in tasks_of_it)
            if group != other and shared:
                yield (
                    f"{shared} of the {len(tasks_of_it)} held-out tasks of {group} share content with tasks that {other} was"
                    f" trained on: as far as it is of these, what {other} gains on {group} is no transfer."
                )


OF_PROMPTS = ("model", "data", "role")
"""Nodes of the words that an embedding depends on."""
OWN, OTHERS = "on the group that was trained on", "on other groups"
Pair = tuple[str, str]
"""The trained group and the measured group."""


class Transfer(options.Transfer, MeasuredStudy, ArmStudy):
    def trainings(self) -> list[Job]:
        return self.arm_jobs()

    def others(self) -> list[Job]:
        """Jobs that embed the tasks of each group with the initial policy. They depend on no seed."""
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

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
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
        of_others = {pair: one.value.value for pair, one in gains.items() if _other(pair)}
        related, sentences = correlations(of_others, alike)
        ends = undecidable({**after, **{f"{name} before": one for name, one in before.items()}})
        answer = [ends] if ends else _in_words(gains, paired_contrasts(_pooled(sides, self._sets), self.metric))
        rows = [
            {"trained_on": pair[0], "measured_on": pair[1], **gain_row(one, self.metric)}
            | {f"likeness_{kind}": share for kind, share in alike.of(*pair).items()}
            for pair, one in gains.items()
        ]
        tables = {"gains": rows, "correlation": related}
        return Findings(
            [*answer, *overlaps(trained), *sentences],
            {name: rows for name, rows in tables.items() if rows},
            _drawn(gains, alike, self.metric),
        )

    @property
    def _sets(self) -> dict[str, str]:
        """The words that name the data of each group, without filters."""
        named = ("data=", "data.path=")
        return {
            name: " ".join(word for word in words if word.startswith(named)) for name, words in self._groups.items()
        }

    @property
    def _groups(self) -> dict[str, list[str]]:
        return {name: words for name, words in self.arms.items() if not self.only or name in self.only}


def _arm(trained: str, measured: str) -> str:
    """The arm that measures a group after training on another. A training measures its own group."""
    return trained if trained == measured else f"{trained}_on_{measured}"


def _embedded(group: str) -> str:
    """The arm that embeds the tasks of a group."""
    return f"{group}_embedded"


def _other(pair: Pair) -> bool:
    return pair[0] != pair[1]


def _pooled(sides: Mapping[Pair, tuple[Values, Values]], sets: Mapping[str, str]) -> dict[str, tuple[Values, Values]]:
    """After and before on all groups, for the policy of the same group and for the mean of the other policies. A task in several
    groups of one set is one task, with its mean."""
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
