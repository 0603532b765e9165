"""The order in which examples are seen: in passes over all of them, or over those of each source in fixed shares."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rlvr_exp.core.seeds import Key, stream
from rlvr_exp.core.shares import Quota


class Order(Protocol):
    """An endless sequence of examples, a function of its places."""

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        """(index, pass) at the places from `first` up to before `last`."""

    def sources(self, count: int) -> Mapping[str, int]:
        """How many of the first `count` examples come from each source; empty where sources have no shares."""


class Passes:
    """Passes over a number of things, laid end to end: every pass is a new order, which depends on the key alone."""

    def __init__(self, count: int, *key: Key):
        self._count, self._key = count, key

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        """(index, pass) at the places from `first` up to before `last`."""
        known = {number: self._order(number) for number in range(first // self._count, -(-last // self._count))}
        return [
            (known[place // self._count][place % self._count], place // self._count) for place in range(first, last)
        ]

    def sources(self, count: int) -> Mapping[str, int]:
        return {}

    def _order(self, number: int) -> list[int]:
        order = list(range(self._count))
        stream(*self._key, number).shuffle(order)
        return order


class MixedPasses:
    """Things of several sources in fixed shares, each source in passes of its own.

    Args:
        indices: of the things of each source.
        shares: of each source, adding up to 1.
    """

    def __init__(self, indices: Mapping[str, Sequence[int]], shares: Mapping[str, float], *key: Key):
        self._indices, self._quota = indices, Quota(shares)
        self._passes = {source: Passes(len(indices[source]), *key, source) for source in shares}

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        return self._quota.between(first, last, self._of)

    def sources(self, count: int) -> Mapping[str, int]:
        return self._quota.before(count)

    def _of(self, source: str, first: int, last: int) -> list[tuple[int, int]]:
        return [(self._indices[source][index], number) for index, number in self._passes[source].between(first, last)]
