"""Feeds an imitation with the golds of the data: each equally often, or those of several sources in fixed shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from rlvr_exp.algorithms.examples import Example, Examples
from rlvr_exp.core.seeds import stream
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.mixture import Mixture
from rlvr_exp.training.passes import Passes


class GoldFeed:
    """The examples of each update, in another form on every pass (`Examples.variant`).

    Args:
        batch_size: examples of an update on all processes.
    """

    def __init__(self, examples: Examples, batch_size: int, seed: int):
        self._examples, self._batch_size, self._seed = examples, batch_size, seed
        self._passes = Passes(len(examples), seed, "order of examples")
        self.rows = ()

    def collect(self, step: int) -> list[Example]:
        """This process's examples in a step, counted from 0."""
        places = self._passes.between(step * self._batch_size, (step + 1) * self._batch_size)
        return [
            self._examples.variant(index, stream(self._seed, "form of an example", number, index))
            for index, number in shard(places)
        ]

    def metrics(self) -> dict[str, float]:
        return {}

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""


@dataclass(frozen=True)
class Part:
    """Some of the examples."""

    examples: Examples
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def variant(self, index: int, rng: Random) -> Example:
        return self.examples.variant(self.places[index], rng)


class MixedFeed:
    """The examples of each update from several sources in fixed shares, each source in passes of its own.

    Args:
        places: of each source's examples.
        batch_size: examples of an update on all processes.
    """

    def __init__(
        self,
        examples: Examples,
        places: Mapping[str, Sequence[int]],
        shares: Mapping[str, float],
        batch_size: int,
        seed: int,
    ):
        pools = {source: Part(examples, places[source]) for source in shares}
        self._mixture = Mixture(pools, shares, next(iter(shares)), batch_size, seed, "sources")
        self._metrics: dict[str, float] = {}
        self.rows = ()

    def collect(self, step: int) -> list[Example]:
        """This process's examples in a step, counted from 0."""
        self._metrics = {f"mix/{source}": float(count) for source, count in self._mixture.counts(step + 1).items()}
        return [self._mixture.example(*place) for place in shard(self._mixture.places(step))]

    def metrics(self) -> dict[str, float]:
        """Examples of each source so far."""
        return self._metrics

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""
