"""Options of the studies of models that are trained from scratch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.study import Arms, Budgeted
from rlvr_exp.core.errors import InputProblem


@configures("rlvr_exp.studies.capacity.Capacity")
@dataclass
class Capacity(Budgeted):
    """How much a model's width and depth are worth at equal tokens and at equal time."""

    widths: list[int] = option([64, 96, 128, 192], low=8)
    """Hidden widths, rising, each a multiple of head_dim; the first is the arm that the others are held against."""
    depths: list[int] = option([1, 3, 6], low=1)
    """Decoder layers at the embedded model's width, rising; empty: widths alone."""
    head_dim: int = option(32, low=2)
    """Width of a head where widths vary; the MLP is three times as wide as the model."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        for name, sizes, least in (("widths", self.widths, 2), ("depths", self.depths, 0)):
            if len(sizes) < least or any(later <= size for size, later in pairwise(sizes)):
                allowed = "two or more, each above the last" if least else "each above the last"
                yield InputProblem(name, "sizes rise", str(sizes), allowed)
        if uneven := [width for width in self.widths if width % self.head_dim]:
            what, allowed = "a width is heads times head_dim", f"multiples of {self.head_dim}"
            yield InputProblem("widths", what, str(uneven), allowed, "", "study.head_dim=16, or other widths")


@configures("rlvr_exp.studies.architecture.ArchitectureStudy")
@dataclass
class ArchitectureStudy(Budgeted, Arms):
    """What attention, positions and embeddings are worth at equal parameters and tokens: the first arm is the reference."""


@configures("rlvr_exp.studies.tokenization.Tokenization")
@dataclass
class Tokenization(Budgeted, Arms):
    """What a tokenizer is worth at equal texts, and at equal tokens: the first arm is the reference."""
