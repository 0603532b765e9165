"""Options of `run.select`: which checkpoint is the best, and when training stops without a better one."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.config.teams import team_node
from rlvr_exp.core.errors import InputProblem

MEASURED = ("held_out/pass_at_1", "held_out/pass_at_1_greedy")
"""Verified success on held-out tasks, measured every so many steps; every other metric is part of the rows anyway."""
PLUS = re.compile(r"\s*\+\s*")
TERM = re.compile(r"(?:(?P<weight>-?\d+(?:\.\d+)?)\s*\*\s*)?(?P<name>[^\s*+]+)")
"""A term of a weighted sum of metrics."""
SHARE = 0.1
"""Most completions of the `times` measurements, as a share of those that the run samples to learn from."""
FEWEST = 16
"""Tasks that a measurement must have, or there are fewer measurements: the best of a handful of tasks is chance."""


@dataclass
class Select:
    """Which checkpoint `best` names, and when training stops without a better one: the same keys in every stage that
    trains. A run with a best checkpoint ends with its weights."""

    metric: str = MEASURED[0]
    """What decides: held_out/pass_at_1 or held_out/pass_at_1_greedy, verified success on tasks of `split`, or any other name
    that rows of metrics have; or a weighted sum of names, such as 0.7 * reward/mean + 0.3 * held_out/pass_at_1."""
    mode: str = option("max", choices=("max", "min"))
    """Whether more or less of it is better."""
    patience: int = option(0, low=0)
    """Values in a row that are no better than the best after which training stops; 0: it never stops early."""
    every_steps: int = option(0, low=0)
    """Steps between measurements of held-out success, next to that at the last step; 0: as often as `times` says."""
    times: int = option(0, low=0)
    """Without every_steps: measurements of held-out success, evenly over the run; fewer, and of fewer tasks, where they
    would sample more than a tenth of what the run learns from; 0: it is not measured in training."""
    split: str = "dev"
    """Split that it is measured on, which is neither trained on nor used for the reported success."""
    tasks: int = option(64, low=1)
    """Tasks of each measurement, always the same tasks."""
    samples: int = option(4, low=1)
    """Completions sampled for each, and a greedy completion where evaluation.greedy is set."""
    restore: bool = True
    """The run ends with the weights of its best step; false: with those of its last."""

    @property
    def active(self) -> bool:
        """A best checkpoint is looked for."""
        return self.every_steps > 0 or not self._only_measured

    @property
    def measures(self) -> bool:
        """Held-out success is to be measured during training."""
        return self.every_steps > 0 or (self.times > 0 and any(name in MEASURED for name in self.weights))

    @property
    def weights(self) -> dict[str, float]:
        """The metrics whose weighted sum decides, each with its weight."""
        terms = [TERM.fullmatch(term) for term in PLUS.split(self.metric.strip())]
        return {term["name"]: float(term["weight"] or 1) for term in terms if term}

    @property
    def _only_measured(self) -> bool:
        return all(name in MEASURED for name in self.weights)

    def value(self, row: Mapping[str, float | None]) -> float | None:
        """What decides, by a row of metrics; None where it has not all of it, or not as a finite number."""
        parts = [(weight, row.get(name)) for name, weight in self.weights.items()]
        values = [weight * value for weight, value in parts if value is not None]
        return sum(values) if len(values) == len(parts) else None

    def problems(self) -> list[InputProblem]:
        return list(self._without_effect())

    def _without_effect(self) -> Iterator[InputProblem]:
        if self.patience and not self.active and not self.measures:
            remedy = "run.select.every_steps=N, or another run.select.metric"
            yield InputProblem(
                "patience", "nothing is measured to be patient with", str(self.patience), "0", "", remedy
            )
        if unread := [term for term in PLUS.split(self.metric.strip()) if not TERM.fullmatch(term)]:
            what, allowed = "is no metric, and no weight * metric", "NAME, or a sum such as 0.7 * NAME + 0.3 * NAME"
            yield InputProblem("metric", what, ", ".join(map(repr, unread)), allowed)
        for name in self.weights:
            if name not in MEASURED and name.startswith("held_out/pass_at"):
                yield InputProblem("metric", "is not measured in training", name, ", ".join(MEASURED), MEASURED[0])


def planned(config: Any) -> Select:
    """`run.select` with its measurements as steps and tasks: `times` is 0, and so is `every_steps` where a run is too short
    for two measurements of `FEWEST` tasks. A function of the configuration alone: a resumed run measures at the same
    steps."""
    wanted, steps = config.run.select, config.algorithm.max_steps
    if wanted.every_steps or not wanted.measures:
        return replace(wanted, times=0)
    answers = wanted.samples + config.evaluation.greedy
    affordable = SHARE * steps * _sampled(config) / answers
    times = min(wanted.times, steps, affordable // min(FEWEST, wanted.tasks))
    if times < 2:
        return replace(wanted, times=0)
    tasks = min(wanted.tasks, affordable // times)
    return replace(wanted, times=0, every_steps=math.ceil(steps / times), tasks=int(tasks))


def _sampled(config: Any) -> float:
    """Completions sampled in a step, on average; of a team those of its last role, as each of its held-out answers is one.
    Imitation samples none, and measures as often as it is asked to."""
    algorithm, team = config.algorithm, team_node(config)
    if not hasattr(algorithm, "prompts_per_step"):
        return math.inf
    uses = getattr(algorithm, "iterations", 1) * getattr(algorithm, "minibatches", 1)
    return algorithm.prompts_per_step * algorithm.group_size * (team.completions if team else 1) / uses
