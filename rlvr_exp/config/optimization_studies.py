"""Options of the studies of optimisation."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.study import Arms, Study
from rlvr_exp.core.errors import InputProblem


@configures("rlvr_exp.studies.optimizers.Optimizers")
@dataclass
class Optimizers(Arms):
    """Which optimizer, schedule or clipping learns most from equally many rollouts; the first arm is the reference."""

    curve: str = "success/mean"
    """The metric of a run's rows by which convergence is judged, such as reward/mean or loss."""
    direction: str = option("maximize", choices=("maximize", "minimize"))
    """Whether a higher or a lower value of the curve is better."""
    window: int = option(10, low=1)
    """Rows over which the curve is smoothed, the latest ones."""


@configures("rlvr_exp.studies.landscape.Landscape")
@dataclass
class Landscape(Study):
    """What the loss looks like around a policy before and after its training, and on the way between the two."""

    training: list[str] = field(default_factory=list)
    """Words of the runs that train a policy, one a seed, such as +stage=grpo."""
    measuring: list[str] = field(default_factory=list)
    """Words of the runs that measure around it: +stage=benchmark, benchmark=landscape and options of these."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        for key, words in (("training", self.training), ("measuring", self.measuring)):
            if not words:
                yield InputProblem(key, "no word says what to run", remedy="study=landscape")

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield from (("training", self.training), ("measuring", self.measuring))
