"""Things of several kinds in fixed shares, in one fixed order."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Thing = TypeVar("Thing")


def normalized(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares that add up to 1, the same whatever the order of the kinds."""
    total = math.fsum(shares.values())
    return {kind: shares[kind] / total for kind in sorted(shares)}


class Quota:
    """The kinds of things one after the other. In any prefix every kind has its share to within less than one thing.
    This is the quota method: earliest deadline first among the kinds that are due (Tijdeman 1980, "The chairman
    assignment problem").

    Args:
        shares: add up to 1.
    """

    def __init__(self, shares: Mapping[str, float]):
        self._shares = shares
        self._at, self._counts = 0, dict.fromkeys(shares, 0)

    def before(self, place: int) -> dict[str, int]:
        """How many things of each kind come before a place."""
        if place < self._at:
            self._at, self._counts = 0, dict.fromkeys(self._shares, 0)
        while self._at < place:
            self._next()
        return dict(self._counts)

    def between(self, first: int, last: int, take: Callable[[str, int, int], Iterable[Thing]]) -> list[Thing]:
        """The things from `first` up to before `last`.

        Args:
            take: gives the things of a kind, from one of the kind's own places up to before another.
        """
        counts = self.before(first)
        kinds = [self._next() for _ in range(first, last)]
        wanted = Counter(kinds)
        things = {kind: iter(take(kind, count, count + wanted[kind])) for kind, count in counts.items()}
        return [next(things[kind]) for kind in kinds]

    def _next(self) -> str:
        place = self._at + 1
        due = [kind for kind, share in self._shares.items() if self._counts[kind] < share * place]
        kind = min(due, key=lambda kind: (self._counts[kind] + 1) / self._shares[kind])
        self._counts[kind] += 1
        self._at = place
        return kind
