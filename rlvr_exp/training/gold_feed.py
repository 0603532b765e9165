"""Feeds an imitation with the golds of the data."""

from collections.abc import Mapping

from rlvr_exp.algorithms.examples import Example, Examples
from rlvr_exp.core.seeds import stream
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.passes import Order


class GoldFeed:
    """The examples of each update, in another form on every pass (`Examples.variant`).

    Args:
        order: of the examples.
        batch_size: examples of an update on all processes.
    """

    def __init__(self, examples: Examples, order: Order, batch_size: int, seed: int):
        self._examples, self._order, self._batch_size, self._seed = examples, order, batch_size, seed
        self._seen = 0
        """Examples so far in the run."""
        self.rows = ()

    def collect(self, step: int) -> list[Example]:
        """This process's examples in a step, counted from 0."""
        first, self._seen = step * self._batch_size, (step + 1) * self._batch_size
        return [
            self._examples.variant(index, stream(self._seed, "form of an example", number, index))
            for index, number in shard(self._order.between(first, self._seen))
        ]

    def metrics(self) -> dict[str, float]:
        """Examples of each source so far."""
        return {f"mix/{source}": float(count) for source, count in self._order.sources(self._seen).items()}

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""
