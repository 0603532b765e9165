"""Options of the studies of optimisation."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.study import Arms, Budgeted, Measured
from rlvr_exp.core.errors import InputProblem


@configures("rlvr_exp.studies.optimizers.Optimizers")
@dataclass
class Optimizers(Budgeted, Arms):
    """Which optimizer, schedule or clipping learns most from equally many rollouts; the first arm is the reference."""

    curve: str = "success/mean"
    """The metric of a run's rows by which convergence is judged, such as reward/mean or loss."""
    direction: str = option("maximize", choices=("maximize", "minimize"))
    """Whether a higher or a lower value of the curve is better."""
    window: int = option(10, low=1)
    """Rows over which the curve is smoothed, the latest ones."""


@configures("rlvr_exp.studies.landscape.Landscape")
@dataclass
class Landscape(Measured):
    """What the loss looks like around a policy before and after its training, and on the way between the two."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if "benchmark=landscape" not in self.measure:
            remedy = 'study.measure=["+stage=benchmark","benchmark=landscape"]'
            yield InputProblem("measure", "does not measure a landscape", str(self.measure), remedy=remedy)
