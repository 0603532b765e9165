"""Bias and variance of failures: how much each adds, and whether the training tasks or the seed cause the variance.

By the decomposition of Domingos (2000) of greedy answers (core/decomposition.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.core.decomposition import Decomposed, Sources, decomposed, sources
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.report.plots import intervals
from rlvr_exp.runs.comparison import arm_values, judged, undecidable
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import Findings, Study

PARTS = {"draw": "the training tasks that were drawn", "seed": "the seed", "both": "the two together"}


class BiasVariance(options.BiasVariance, Study):
    def jobs(self) -> list[Job]:
        return [job for draw in self._draws for job in self.arm(f"resample{draw}", [f"data.resample={draw}"])]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        arms = arm_values(runs, self.metric)
        seeds = [seed for seed in self.seeds if all(seed in of_arm for of_arm in arms.values())]
        if len(arms) < self.resamples or not seeds:
            return Findings([f"Cannot tell: no seed completed with all {self.resamples} samples of training tasks."])
        tasks = judged([of_arm[seed] for of_arm in arms.values() for seed in seeds])
        outcomes = [[[of_arm[seed][task] for seed in seeds] for of_arm in arms.values()] for task in tasks]
        found = decomposed(outcomes)
        of = sources(outcomes) if len(seeds) > 1 else None
        runs_counted = f"{len(tasks)} tasks, {len(arms)} samples of training tasks, {len(seeds)} seeds"
        answer = [undecidable(arms), *_in_words(found, runs_counted), _sources_in_words(of)]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"decomposition": _rows(found)}
        if of is not None:
            tables["variance"] = _rows(of)
        shown = {name.replace("_", " "): Estimate(*(100 * end for end in one)) for name, one in _named(found)}
        plot = intervals("Failures of greedy answers", shown, "points, with 95% intervals")
        return Findings([*filter(None, answer)], tables, {"decomposition": plot})

    @property
    def _draws(self) -> range:
        return range(1, self.resamples + 1)


def _named(found: Decomposed | Sources) -> list[tuple[str, Estimate]]:
    return [*found._asdict().items()]


def _rows(found: Decomposed | Sources) -> list[dict[str, Any]]:
    return [{"part": name, **one._asdict()} for name, one in _named(found)]


def _in_words(found: Decomposed, counted: str) -> list[str]:
    error, bias, adds, takes = (_points(one) for _, one in _named(found))
    return [
        f"Greedy answers fail on {error} of the tasks: {bias} are bias, failed by most trainings; variance adds {adds} where"
        f" most succeed and takes {takes} where most fail ({counted})."
    ]


def _sources_in_words(found: Sources | None) -> str:
    if found is None:
        return "One seed cannot tell what of the variance is the seed's."
    total = sum(one.value for one in found)
    if total <= 0:
        return "No outcome varies from training to training."
    parts = [
        f"{PARTS[name]} {one.value / total:.0%} [{one.low / total:.0%}, {one.high / total:.0%}]"
        for name, one in _named(found)
    ]
    return f"The variance of an outcome over trainings is {total:.3f}: of {', of '.join(parts)}."


def _points(one: Estimate) -> str:
    value, low, high = (100 * end for end in one)
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"
