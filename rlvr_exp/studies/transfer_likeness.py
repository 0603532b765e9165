"""Whether training helps another group the more, the more alike the two groups are: likeness of the groups that were
trained on, and its rank correlation with the gains."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import mul
from statistics import fmean
from typing import Any

from rlvr_exp.config.load import load
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.statistics import LEVEL, Permuted, mantel
from rlvr_exp.evaluation.task_similarity import Profile, inputs, programs, similarity
from rlvr_exp.records.context import read_benchmark
from rlvr_exp.studies.lineage import Training, trained_by
from rlvr_exp.studies.study import Run

EMBEDDINGS = "embeddings"
KINDS = ("programs", "inputs", EMBEDDINGS)
"""What groups are compared by."""
UNTOLD, EQUAL = "Cannot tell whether likeness of", "gains are all equal, or groups are all equally alike or without it"
FEWEST = 5
"""Groups of which a correlation can be beyond chance: of n! permutations one is as good, on either side, for each kind."""


@dataclass(frozen=True)
class Likeness:
    """Profiles of the training tasks of each group, by kind, and where the initial policy puts them."""

    profiles: Mapping[str, Mapping[str, Profile]]
    embeddings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def of(self, first: str, second: str) -> dict[str, float]:
        """Similarities of two groups, by the kinds that both have a profile of: without golds there is none of programs."""
        found = {
            kind: similarity(known[first], known[second])
            for kind, known in self.profiles.items()
            if known.get(first) and known.get(second)
        }
        if {first, second} <= {*self.embeddings}:
            found[EMBEDDINGS] = _in_direction(self.embeddings, first, second)
        return found


def _in_direction(embeddings: Mapping[str, Sequence[float]], first: str, second: str) -> float:
    """(1 + cosine) / 2 of two groups' directions from the mean of all groups: prompts of one wording all lie close together."""
    centre = [fmean(values) for values in zip(*embeddings.values(), strict=True)]
    one, other = (
        [value - middle for value, middle in zip(embeddings[name], centre, strict=True)] for name in (first, second)
    )
    lengths = math.hypot(*one) * math.hypot(*other)
    return (1 + (sum(map(mul, one, other)) / lengths if lengths else 0.0)) / 2


@dataclass(frozen=True)
class Correlations:
    rows: list[dict[str, Any]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def likeness(runs: Sequence[Run], most: int, embedded: Mapping[str, Run]) -> Likeness:
    """Of the groups that runs have trained on, by the first `most` tasks of each. Raises InputError: data have changed since.

    Args:
        embedded: by group, the run that measured its embedding.
    """
    profiles: dict[str, dict[str, Profile]] = {kind: {} for kind in ("programs", "inputs")}
    for run in {run.job.arm: run for run in runs}.values():
        own = next(trained_by(load(run.directory / "config.yaml"), run.job.name, run.directory))
        if isinstance(own, Training):
            tasks = own.tasks[:most]
            profiles["programs"][run.job.arm] = programs(tasks)
            profiles["inputs"][run.job.arm] = inputs(own.domain, tasks)
    measured = {name: read_benchmark(run.directory) for name, run in embedded.items()}
    return Likeness(profiles, {name: found["mean"] for name, found in measured.items()})


def correlations(gains: Mapping[tuple[str, str], float], alike: Likeness) -> Correlations:
    """Of the gains of all pairs of different groups with how alike they are.

    Args:
        gains: by the group that was trained on and the one that was measured.
    """
    groups = list(dict.fromkeys(name for pair in gains for name in pair))
    if len(groups) < FEWEST or len(gains) < len(groups) * (len(groups) - 1):
        return Correlations(
            [], [f"Cannot tell what likeness does: that takes {FEWEST} groups, all measured on each other."]
        )
    kinds = [kind for kind in KINDS if kind != EMBEDDINGS or alike.embeddings]
    found = {kind: _correlation(groups, gains, alike, kind) for kind in kinds}
    known = {kind: one for kind, one in found.items() if one is not None}
    corrected = dict(zip(known, holm([one.p for one in known.values()]), strict=True))
    rows = [
        {
            "likeness": kind,
            "spearman": one.value,
            "chance_low": one.low,
            "chance_high": one.high,
            "p_holm": corrected[kind],
        }
        for kind, one in known.items()
    ]
    sentences = [
        _sentence(kind, one, corrected[kind], len(groups)) if one else f"{UNTOLD} {kind} matters: {EQUAL}."
        for kind, one in found.items()
    ]
    return Correlations(rows, sentences)


def _correlation(
    groups: Sequence[str], gains: Mapping[tuple[str, str], float], alike: Likeness, kind: str
) -> Permuted | None:
    likes = [[alike.of(one, other).get(kind, math.nan) for other in groups] for one in groups]
    if any(map(math.isnan, chain(*likes))):
        return None
    return mantel(likes, [[gains.get((one, other), 0.0) for other in groups] for one in groups])


def _sentence(kind: str, one: Permuted, p: float, groups: int) -> str:
    said = f"rank correlation of gains with the likeness of {kind} {one.value:+.2f}, {groups} groups"
    chance = f"chance alone gives {one.low:+.2f} to {one.high:+.2f} in 95 of 100 permutations of the groups, p {p:.3f}"
    if p > LEVEL:
        return f"{UNTOLD} {kind} matters: {said}; {chance}."
    return (
        f"Training helps other groups {'more' if one.value > 0 else 'less'}, the more alike they are: {said}; {chance}."
    )
