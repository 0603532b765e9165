"""The order of examples: passes over all of them, fixed shares of sources, and batches that mix several kinds."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from rlvr_exp.algorithms.sft import Example
from rlvr_exp.core.seeds import Key, stream
from rlvr_exp.core.shares import Quota


class Order(Protocol):
    """An endless sequence of examples, a function of its places."""

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        """(index, pass) at the places from `first` up to before `last`."""

    def sources(self, count: int) -> Mapping[str, int]:
        """How many of the first `count` examples come from each source; empty if sources have no shares."""


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


class Pool(Protocol):
    """Examples of one kind."""

    def __len__(self) -> int: ...

    def variant(self, index: int, rng: Random) -> Example:
        """An example, in whatever form the generator draws."""


class Mixture:
    """
    Args:
        pools: by kind, none empty.
        shares: of all examples, by kind; `rest` has the remainder.
        rest: a kind of the pools.
        alone: the step, counted from 0, from which on `rest` has every example; None: no step.
        orders: of the kinds that are not seen in plain passes.
    """

    def __init__(
        self,
        pools: Mapping[str, Pool],
        shares: Mapping[str, float],
        rest: str,
        batch_size: int,
        *key: Key,
        alone: int | None = None,
        orders: Mapping[str, Order] | None = None,
    ):
        self._pools, self._batch_size, self._key = pools, batch_size, key
        self._rest, self._alone = rest, alone
        given = {kind: share for kind, share in shares.items() if kind in pools and kind != rest}
        self._shares = {rest: 1 - sum(given.values()), **given}
        plain: dict[str, Order] = {kind: Passes(len(pool), *key, kind) for kind, pool in pools.items()}
        self._orders = {**plain, **(orders or {})}
        self._counts = [dict.fromkeys(self._shares, 0)]
        """Examples of each kind before each step, as far as they are known."""

    def places(self, step: int) -> list[tuple[str, int, int]]:
        """(kind, index, pass) of each example of a step, counted from 0."""
        begun, ended = self.counts(step), self.counts(step + 1)
        return [
            (kind, *place) for kind in self._shares for place in self._orders[kind].between(begun[kind], ended[kind])
        ]

    def counts(self, step: int) -> dict[str, int]:
        """Examples of each kind before a step."""
        while len(self._counts) <= step:
            self._counts.append(self._after(len(self._counts) - 1))
        return self._counts[step]

    def sources(self, kind: str, step: int) -> Mapping[str, int]:
        """Examples of a kind before a step by their source, if sources have shares of it."""
        return self._orders[kind].sources(self.counts(step)[kind]) if kind in self._orders else {}

    def example(self, kind: str, index: int, number: int) -> Example:
        return self._pools[kind].variant(index, stream(*self._key, "form", kind, number, index))

    def _after(self, step: int) -> dict[str, int]:
        """The counts after a step: one by one the kind that lacks most."""
        counts = dict(self._counts[step])
        if self._alone is not None and step >= self._alone:
            counts[self._rest] += self._batch_size
            return counts
        for every in range(step * self._batch_size + 1, (step + 1) * self._batch_size + 1):
            lacks = {kind: share * every - counts[kind] for kind, share in self._shares.items()}
            counts[max(lacks, key=lambda kind: lacks[kind])] += 1
        return counts
