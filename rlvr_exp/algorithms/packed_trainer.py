"""A trainer whose passes are packed rows (algorithms.packing) where the model supports them."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from rlvr_exp.algorithms.packed_layers import packed_layers
from rlvr_exp.algorithms.packing import ModelRows, filled
from rlvr_exp.algorithms.packing_attention import attending
from rlvr_exp.algorithms.packing_probe import Choice, choose, for_all
from rlvr_exp.algorithms.stepped import Stepped
from rlvr_exp.models.onednn_linear import onednn_training, padded_rows
from rlvr_exp.rollouts.distributed import all_gather_object

_LOG = logging.getLogger(__name__)


class PackedTrainer(Stepped):
    """Mixin before a Transformers trainer: how its rows are packed is tried on the model once, and kept in checkpoints.

    Args:
        longest: tokens of the longest row that is not packed, a prompt with its completion.
        given: arguments of `Stepped` and of the trainer.
    """

    def __init__(self, *, longest: int, **given: Any):
        self._longest = longest
        self._choice: Choice | None = None
        self._chosen_before: Choice | None = None
        """The choice of the resumed run: other weights could lead to another choice, which rounds differently."""
        super().__init__(**given)

    @property
    def _way(self) -> str | None:
        """How a packed row is attended to; None before the choice, or where rows are not packed."""
        return self._choice.implementation if self._choice else None

    @property
    def _fused(self) -> bool:
        """Whether layers and head are computed by functions of our own."""
        return self._choice is not None and self._choice.fused

    def _begin(self, model: torch.nn.Module) -> None:
        """Before step 1: choose how rows are packed. All ranks call this."""
        self._choice = self._chosen_before or self._chosen(model)
        if self._choice.reasons:
            way = self._choice.implementation
            how = f"packed rows use {way}" if way else "completions are computed one by one, each with its prompt"
            _LOG.warning("%s: %s", how, "; ".join(self._choice.reasons))

    def _chosen(self, model: torch.nn.Module) -> Choice:
        """What all ranks can take. Each tries by itself: a wrapper for several would exchange what it holds, and the others
        wait for one that has failed."""
        tried = model.module if isinstance(model, DistributedDataParallel) else model
        own = choose(tried, self._longest, self.accelerator.device, self.model.dtype)
        return for_all(all_gather_object(own))

    @contextmanager
    def passing(self, last: bool) -> Iterator[None]:
        """Only the last pass exchanges gradients, and recomputed layers use the same attention."""
        attention = attending(self.model, self._way) if self._way else nullcontext()
        with super().passing(last), attention, self.computing(self.model):
            yield

    @contextmanager
    def computing(self, model: torch.nn.Module) -> Iterator[None]:
        """Inside the block the model's layers on CPU compute by kernels that are chosen for training."""
        with packed_layers(model) if self._fused else nullcontext(), onednn_training(model):
            yield

    def trainer_state(self) -> Mapping[str, Any]:
        """How rows are packed, so that a resume need not choose again."""
        return {
            **super().trainer_state(),
            "choice": None if self._choice is None else list(vars(self._choice).values()),
            "device": self.accelerator.device.type,
        }

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:
        super().load_trainer_state(state)
        if state["choice"] is not None and state["device"] == self.accelerator.device.type:
            self._chosen_before = Choice(*state["choice"])


def filled_on_cpu(rows: ModelRows) -> ModelRows:
    """A packed row as wide as the linear layers on CPU want it; they would fill up each of their inputs in a copy."""
    width = rows.input_ids.shape[1]
    return filled(rows, padded_rows(width)) if rows.input_ids.device.type == "cpu" else rows
