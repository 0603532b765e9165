"""A policy that learns from gold answers, and the order in which it sees them."""

from collections.abc import Mapping

from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.training.learner import Learner


class GoldFeed:
    """The examples of each update: every pass over them is a new order, which depends on the seed alone.

    Args:
        examples, batch_size: how many there are, and how many an update takes on all processes.
    """

    def __init__(self, examples: int, batch_size: int, seed: int):
        self._examples, self._batch_size, self._seed = examples, batch_size, seed
        self.rows = ()

    def collect(self, step: int) -> list[int]:
        """Indices of this process's examples in a step, counted from 0."""
        first = step * self._batch_size
        orders = {place // self._examples for place in (first, first + self._batch_size - 1)}
        known = {number: self._order(number) for number in range(min(orders), max(orders) + 1)}
        places = range(first, first + self._batch_size)
        return shard([known[place // self._examples][place % self._examples] for place in places])

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""

    def _order(self, number: int) -> list[int]:
        order = list(range(self._examples))
        stream(self._seed, "order of examples", number).shuffle(order)
        return order


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
