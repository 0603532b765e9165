"""A policy that learns from gold answers."""

import math

from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.config.scales import HELD_OUT_BITS, HELD_OUT_LOSS
from rlvr_exp.models.adapters import adapter_metrics
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
