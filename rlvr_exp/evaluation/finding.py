"""What a comparison of two arms found, as a sentence: which is better and by how much, that no difference was found and which
one would have been, or that the measurement cannot tell."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config.scales import Scale, scale_of
from rlvr_exp.core.statistics import LEVEL

FLOOR, CEILING = 0.05, 0.95
"""Rates below and above which all arms are too near to the end of the scale to differ by much."""
ENOUGH_SEEDS = 5
"""From so many seeds on the calibration holds (docs/statistics.md)."""


def finding(first: str, second: str, change: Mapping[str, Any], levels: Sequence[float], metric: str = "") -> str:
    """The sentence of a `SeedsDifference` as plain data, second minus first.

    Args:
        levels: the rates of both arms.
        metric: its scale says which way is better, and in which unit.
    """
    scale = scale_of(metric)
    if (end := at_an_end(levels)) and not scale.less_is_better:
        return f"cannot tell: all arms lie {end}"
    p = change.get("p_holm", change["p"])
    if p <= LEVEL:
        rises = (change["value"] > 0) != scale.less_is_better
        better = f"{second} is {'better' if rises else 'worse'} than {first}: {_change(change, scale)}"
        return better + of_few_seeds(change["seeds"], "an interval")
    corrected = f" after Holm's correction for {change['arms']} arms" if change["p"] <= LEVEL else ""
    least = f"{scale.number(change['smallest'])} {scale.unit}"
    smallest = f"one of {least} would have been found in 80 of 100 such studies"
    none = f"no difference between {second} and {first} was found{corrected}: {_change(change, scale)}; {smallest}"
    return none + of_few_seeds(change["seeds"], "such a figure")


def at_an_end(levels: Sequence[float]) -> str:
    """At which end of the scale all rates lie, where they have no room to differ; '' where they have."""
    if max(levels) < FLOOR:
        return f"under {FLOOR:.0%}"
    return f"over {CEILING:.0%}" if min(levels) > CEILING else ""


def _change(change: Mapping[str, Any], scale: Scale) -> str:
    low, high = (scale.number(change[key]) for key in ("low", "high"))
    return f"{scale.number(change['value'], '+')} {scale.unit} [{low}, {high}]"


def of_few_seeds(seeds: int, what: str) -> str:
    """What has to be said of an interval, or another figure, of so few seeds; '' of enough."""
    if seeds == 1:
        return "; of one seed, so that nothing is known of others"
    return f"; {what} of {seeds} seeds is too small where seeds differ much" if seeds < ENOUGH_SEEDS else ""
