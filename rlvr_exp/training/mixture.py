"""Batches of examples of several kinds in fixed shares, each kind in passes of its own."""

from collections.abc import Mapping
from random import Random
from typing import Protocol

from rlvr_exp.algorithms.examples import Example
from rlvr_exp.core.seeds import Key, stream
from rlvr_exp.training.sft_learner import Passes


class Pool(Protocol):
    """Examples of one kind."""

    def __len__(self) -> int: ...

    def variant(self, index: int, rng: Random) -> Example:
        """An example, in whatever form the generator draws."""


class Mixture:
    """
    Args:
        pools: by kind, none empty.
        shares: of a batch, by kind; `rest` has what is left.
        rest: a kind of the pools.
    """

    def __init__(self, pools: Mapping[str, Pool], shares: Mapping[str, float], rest: str, batch_size: int, *key: Key):
        self._pools, self._rest, self._batch_size, self._key = pools, rest, batch_size, key
        self._shares = {kind: share for kind, share in shares.items() if kind in pools and kind != rest}
        self._passes = {kind: Passes(len(pool), *key, kind) for kind, pool in pools.items()}

    def places(self, step: int) -> list[tuple[str, int, int]]:
        """(kind, index, pass) of each example of a step, counted from 0: over all steps so far each kind has its share, up to
        one example."""
        begun, ended = self._counts(step), self._counts(step + 1)
        return [
            (kind, *place)
            for kind, passes in self._passes.items()
            for place in passes.between(begun[kind], ended[kind])
        ]

    def example(self, kind: str, index: int, number: int) -> Example:
        return self._pools[kind].variant(index, stream(*self._key, "form", kind, number, index))

    def _counts(self, step: int) -> dict[str, int]:
        """Examples of each kind before a step."""
        every = step * self._batch_size
        counts = {kind: int(every * share + 0.5) for kind, share in self._shares.items()}
        return {**counts, self._rest: every - sum(counts.values())}
