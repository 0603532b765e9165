"""A quantity that is known exactly against what was estimated or computed, and whether chance explains the difference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlvr_exp.core.crossed import holm
from rlvr_exp.core.statistics import Estimate, mean_p_value, t_interval

HOLDS, OUTSIDE = "holds", "outside"


@dataclass(frozen=True)
class Check:
    """Of several components, the first is the one that is shown; all have to hold."""

    name: str
    exact: Sequence[float]
    """By component."""
    draws: torch.Tensor
    """(draws, components), independent and each without bias; a single draw was computed and has no chance in it."""
    tolerance: float = 0.0
    """How far rounding may move a single draw."""

    def p_values(self) -> list[float]:
        """Of each component having the exact mean; 0 or 1 of a single draw, and 0 of what is no number."""
        if len(self.draws) == 1:
            off = [abs(float(one) - exact) for one, exact in zip(self.draws[0], self.exact, strict=True)]
            return [float(distance <= self.tolerance) for distance in off]
        return [
            mean_p_value(column.tolist(), exact) if math.isfinite(exact) and bool(column.isfinite().all()) else 0.0
            for column, exact in zip(self.draws.T, self.exact, strict=True)
        ]


@dataclass(frozen=True)
class Row:
    """A check with its verdict."""

    name: str
    exact: float
    estimate: Estimate
    """With its 95% interval."""
    p: float
    """The smallest of its components', corrected for all components of all checks (Holm 1979)."""
    verdict: str


def rows_of(checks: Sequence[Check], level: float) -> list[Row]:
    """
    Args:
        level: the chance that any check is outside though all of them hold.
    """
    each = [check.p_values() for check in checks]
    corrected = iter(holm([p for of_check in each for p in of_check]))
    found = []
    for check, of_check in zip(checks, each, strict=True):
        p = min([next(corrected) for _ in of_check])
        shown = t_interval(check.draws[:, 0].tolist())
        found.append(Row(check.name, check.exact[0], shown, p, OUTSIDE if p < level else HOLDS))
    return found
