"""What TRL's trainers lack for a loop that is not theirs: `Stepped` prepares one and then leaves every step to the caller
(rlvr_exp.training.learner).

Seams of the pinned Transformers: `train` prepares the model and calls `_inner_training_loop`, which is cut here after
`_init_training_state` and `_prepare_for_training`; `training_step` is a forward and a backward pass; `create_optimizer`
sets `self.optimizer`; `compute_loss` returns the loss of a pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from torch import nn
from transformers import PrinterCallback
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME

from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.models.zero3 import register_engine


class Stepped(ABC):
    """Mixin before a Transformers trainer: its updates are requested one by one.

    A subclass turns a batch into passes: `take`, `passes`.

    Args:
        optimizer: of the trained weights.
        guard: counts updates that are not applied.
        given: arguments of the trainer.
    """

    model: nn.Module
    model_wrapped: nn.Module
    args: Any
    state: Any
    accelerator: Any
    optimizer: Any
    lr_scheduler: Any
    control: Any
    callback_handler: Any
    train: Callable[..., Any]
    remove_callback: Callable[..., Any]
    training_step: Callable[..., torch.Tensor]
    is_deepspeed_enabled: bool
    _metrics: Any
    _tr_loss: torch.Tensor
    _total_loss_scalar: float
    _finalize_training: Callable[..., Any]
    _get_learning_rate: Callable[[], float]
    _init_training_state: Callable[..., Any]
    _prepare_for_training: Callable[..., Any]
    _save_optimizer_and_scheduler: Callable[[str], None]

    def __init__(self, *, optimizer: torch.optim.Optimizer, guard: NonFiniteGuard, **given: Any):
        self.guard, self._given_optimizer = guard, optimizer
        super().__init__(**given, optimizers=(optimizer, None))
        self.remove_callback(PrinterCallback)
        if self.under_deepspeed and self.accelerator.deepspeed_plugin.zero_stage == 3:
            register_engine(self.model, self)

    @property
    def under_deepspeed(self) -> bool:
        return self.accelerator.distributed_type == DistributedType.DEEPSPEED

    @property
    def needs_batch(self) -> bool:
        """Whether the next update needs a batch; otherwise it continues on the last one."""
        return True

    @abstractmethod
    def take(self, batch: Any) -> Any:
        """Cut a batch into the passes of its updates; returns the batch as the updates use it."""

    @abstractmethod
    def passes(self) -> tuple[Sequence[Mapping[str, Any]], Any]:
        """The inputs of each pass of the next update, and the number of items that their losses are divided by (None:
        the inputs have it)."""

    def gradient(self) -> torch.Tensor:
        """Accumulate the gradient of an update over its passes; returns the sum of their losses."""
        passes, items = self.passes()
        losses = []
        for number, inputs in enumerate(passes, 1):
            with self.passing(last=number == len(passes)):
                losses.append(self.training_step(self.model_wrapped, inputs, items))
        return torch.stack(losses).sum()

    @contextmanager
    def passing(self, last: bool) -> Iterator[None]:
        """The context of a pass: only the last exchanges gradients."""
        self.accelerator.gradient_state._set_sync_gradients(last)
        # DeepSpeed itself tracks when a step is complete.
        alone = last or self.under_deepspeed
        with nullcontext() if alone else self.accelerator.no_sync(self.model_wrapped):
            yield

    def compute_loss(self, model: nn.Module, *args: Any, **kwargs: Any) -> Any:
        found = super().compute_loss(model, *args, **kwargs)
        if not self.model.training:
            return found
        loss, *rest = found if isinstance(found, tuple) else (found,)
        loss = self.guard.poisoned(loss)
        return (loss, *rest) if rest else loss

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """The given optimizer: Transformers drops it when it sets up DeepSpeed, and would build its own default."""
        if self.optimizer is None:
            self.optimizer = self._given_optimizer
        return self.optimizer

    @property
    def checkpoint_parts(self) -> Mapping[str, Any]:
        """Objects that belong to a checkpoint besides the policy, by name (rlvr_exp.training.checkpoints)."""
        return {}

    def trainer_state(self) -> Mapping[str, Any]:
        """Tensors and plain values that a resumed trainer needs."""
        return {}

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - a trainer may have no state
        """Restore the state that `trainer_state` returned; called before `train`."""

    def _inner_training_loop(self, *_: Any, args: Any, resume_from_checkpoint: str | None = None, **__: Any) -> None:
        """Everything before the first step. The steps are the caller's."""
        self.accelerator.free_memory()
        self._init_training_state(args.max_steps, args.max_steps, 1, resume_from_checkpoint, None)
        self._prepare_for_training(args.max_steps, None, resume_from_checkpoint)
        self.current_gradient_accumulation_steps = 1
        self.model_wrapped.zero_grad()

    def _load_from_checkpoint(self, *_: Any, **__: Any) -> None:  # noqa: B027 - it does nothing on purpose
        """Nothing: the weights are loaded already; Transformers does not find those of adapters, values and shards."""

    def _load_optimizer_and_scheduler(self, checkpoint: str) -> None:
        """Load through host memory: an optimizer moves its state to the device of its weights."""
        if self.is_deepspeed_enabled:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        for part, name in ((self.optimizer, OPTIMIZER_NAME), (self.lr_scheduler, SCHEDULER_NAME)):
            part.load_state_dict(torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True))
