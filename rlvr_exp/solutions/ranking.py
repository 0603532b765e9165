"""Metrics of quality, and the order that a list of them makes: lexicographic, ties in the order of insertion."""

from collections.abc import Sequence
from typing import NamedTuple

from rlvr_exp.config.solutions import QUALITY

REVERSED = "-"
"""Before a metric's name: its worst comes first."""


class Metric(NamedTuple):
    sql: str
    """Over the columns of a store."""
    most_first: bool
    about: str


METRICS: dict[str, Metric] = {
    "correct": Metric("outcome = 'passed'", True, "those that passed first"),
    "pairs_right": Metric("CASE WHEN total THEN passed * 1.0 / total ELSE 0.0 END", True, "the largest share first"),
    "size": Metric("size", False, "the smallest syntax tree first"),
    "cpu_s": Metric("seconds", False, "the fastest first; 0 where nobody measured"),
    "step": Metric("step", True, "the newest first"),
    "difficulty": Metric("difficulty", True, "those of the hardest tasks first"),
}
DEFAULT = ("correct", "pairs_right", "size")
ALLOWED = QUALITY


def order_by(quality: Sequence[str]) -> str:
    """The ORDER BY clause of a ranking, best first. Raises ValueError for a metric that there is not."""
    if unknown := [name for name in quality if name not in ALLOWED]:
        raise ValueError(f"quality: got {', '.join(unknown)}, allowed {', '.join(ALLOWED)}")
    return ", ".join([*map(_term, quality), "number"])


def _term(name: str) -> str:
    metric = METRICS[name.removeprefix(REVERSED)]
    return f"({metric.sql}) {'DESC' if metric.most_first != name.startswith(REVERSED) else 'ASC'}"
