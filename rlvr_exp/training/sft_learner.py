"""Supervised fine-tuning: a policy that learns from reference answers, and the feed of these answers."""

import math
from collections.abc import Mapping

from rlvr_exp.algorithms.examples import Example, Examples
from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.core.measures import HELD_OUT_BITS, HELD_OUT_LOSS
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.training.example_order import Order
from rlvr_exp.training.learner import Learner


class SFTLearner(Learner):
    """
    Args:
        every_steps: steps between measurements of the held-out loss.
        characters: of the held-out golds.
    """

    trainer: ImitationTrainer

    def __init__(self, role: str, trainer: ImitationTrainer, every_steps: int, characters: int):
        self._every, self._characters = every_steps, characters
        super().__init__(role, trainer, {})

    def row(self) -> dict[str, float]:
        row = super().row()
        return {**row, **adapter_metrics(self.trainer.model)} if row else {}

    def due(self, step: int) -> bool:
        """Whether the held-out loss is measured after a step."""
        return step % self._every == 0

    def held_out_loss(self) -> dict[str, float]:
        nats, tokens = self.trainer.held_out_loss()
        return {HELD_OUT_LOSS: nats / tokens, HELD_OUT_BITS: nats / math.log(2) / self._characters}


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
