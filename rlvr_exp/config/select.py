"""Options of `run.select`: which checkpoint is the best, and when training stops without a better one."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

MEASURED = ("held_out/pass_at_1", "held_out/pass_at_1_greedy")
"""Verified success on held-out tasks, measured every so many steps; every other metric is part of the rows anyway."""


@dataclass
class Select:
    """Which checkpoint `best` names, and when training stops without a better one: the same keys in every stage that
    trains. A run with a best checkpoint ends with its weights."""

    metric: str = MEASURED[0]
    """What decides: held_out/pass_at_1 or held_out/pass_at_1_greedy, verified success on tasks of `split`, or any other name
    that rows of metrics have."""
    mode: str = option("max", choices=("max", "min"))
    """Whether more or less of it is better."""
    patience: int = option(0, low=0)
    """Values in a row that are no better than the best after which training stops; 0: it never stops early."""
    every_steps: int = option(0, low=0)
    """Steps between measurements of held-out success, next to that at the last step; 0: it is not measured in
    training."""
    split: str = "dev"
    """Split that it is measured on, which is neither trained on nor used for the reported success."""
    tasks: int = option(64, low=1)
    """Tasks of each measurement, always the same tasks."""
    samples: int = option(4, low=1)
    """Completions sampled for each, and a greedy completion where evaluation.greedy is set."""

    @property
    def active(self) -> bool:
        """A best checkpoint is looked for."""
        return self.every_steps > 0 or self.metric not in MEASURED

    def problems(self) -> list[InputProblem]:
        return list(self._without_effect())

    def _without_effect(self) -> Iterator[InputProblem]:
        if self.patience and not self.active:
            remedy = "run.select.every_steps=N, or another run.select.metric"
            yield InputProblem(
                "patience", "nothing is measured to be patient with", str(self.patience), "0", "", remedy
            )
        if self.metric not in MEASURED and self.metric.startswith("held_out/pass_at"):
            yield InputProblem("metric", "is not measured in training", self.metric, ", ".join(MEASURED), MEASURED[0])
