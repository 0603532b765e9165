"""Which solutions of a task stay where there are too many: half the best, half the most different from those.

SOAR measured 25 best with 25 others above the 50 best alone (36.5% against 34.3% of train tasks). How different two
programs are is on how many inputs their outputs differ, which needs no embedding. A function of the ranking: no chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import ne

from rlvr_exp.solutions.ranking import DEFAULT, order_by

Outputs = Sequence[str]


@dataclass(frozen=True)
class Keeping:
    """What a store keeps; decided when its file is made, for all who write to it."""

    per_task: int = 50
    """Most solutions of a task."""
    quality: tuple[str, ...] = DEFAULT
    """The ranking by which the best are chosen."""

    def __post_init__(self) -> None:
        order_by(self.quality)
        if self.per_task < 1:
            raise ValueError(f"Keeping.per_task: got {self.per_task}, allowed at least 1")


def kept(ranked: Sequence[Outputs], most: int) -> list[int]:
    """Places of those that stay.

    Args:
        ranked: the outputs of each solution of a task, the best first.
        most: how many may stay.
    """
    if len(ranked) <= most:
        return list(range(len(ranked)))
    chosen = list(range(most - most // 2))
    nearest = {
        place: min(distance(ranked[place], ranked[one]) for one in chosen) for place in range(len(chosen), len(ranked))
    }
    while len(chosen) < most:
        farthest = max(nearest, key=lambda place: nearest[place])  # the first, so the best, among equals
        del nearest[farthest]
        chosen.append(farthest)
        for place, near in nearest.items():
            if near:
                nearest[place] = min(near, distance(ranked[place], ranked[farthest]))
    return chosen


def distance(one: Outputs, other: Outputs) -> int:
    """Inputs on which two solutions differ."""
    return sum(map(ne, one, other)) + abs(len(one) - len(other))
