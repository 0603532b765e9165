"""A policy that learns from gold answers, and the order in which it sees them."""

from collections.abc import Mapping

from rlvr_exp.algorithms.examples import Example, Examples
from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.core.seeds import Key, stream
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.training.learner import Learner


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

    def _order(self, number: int) -> list[int]:
        order = list(range(self._count))
        stream(*self._key, number).shuffle(order)
        return order


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

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""


class SFTLearner(Learner):
    """
    Args:
        every_steps: steps between measurements of the held-out loss.
    """

    def __init__(self, role: str, trainer: ImitationTrainer, every_steps: int):
        self._every = every_steps
        super().__init__(role, trainer, {})

    def row(self) -> dict[str, float]:
        row = super().row()
        return {**row, **adapter_metrics(self.trainer.model)} if row else {}

    def due(self, step: int) -> bool:
        """Whether the held-out loss is measured after a step."""
        return step % self._every == 0

    def held_out_loss(self) -> dict[str, float]:
        return {"held_out/loss": self.trainer.evaluate()["eval_loss"]}
