"""Trainers whose updates are requested one by one (rlvr_exp.training.learner).

`Stepped` prepares a Transformers trainer and leaves every step to the caller. `PackedTrainer` packs its rows
(algorithms.packing) if the model supports them. `as_plain` and `from_plain` save the passes of a batch in a checkpoint.

Seams of the pinned Transformers: `train` prepares the model and calls `_inner_training_loop`, which is cut here after
`_init_training_state` and `_prepare_for_training`; `training_step` is a forward and a backward pass; `create_optimizer`
sets `self.optimizer`; `compute_loss` returns the loss of a pass.

`warm_up` tries a pass at the longest lengths before step 1, so that memory runs out in the first minute or not at all. Only
accelerators with their own memory are tried: a host that is short of memory slows down or ends any process, and such a
pass costs a CPU as much as a step. Weights, optimizer state and random numbers stay unchanged: the gradient is exactly
zero and discarded. The moments of an optimizer are allocated in step 1 and are not part of the trial.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import PrinterCallback
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.packed_layers import Choice, choose, for_all, packed_layers
from rlvr_exp.algorithms.packing import ModelRows, PackedLayout, attending, filled
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.models.onednn_linear import onednn_training, padded_rows
from rlvr_exp.models.parameters import register_engine
from rlvr_exp.rollouts.distributed import all_gather_object

_LOG = logging.getLogger(__name__)


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
    _clip_grad_norm: Callable[[nn.Module], torch.Tensor]
    _finalize_training: Callable[..., Any]
    _get_learning_rate: Callable[[], float]
    _init_training_state: Callable[..., Any]
    _prepare_for_training: Callable[..., Any]
    _save_optimizer_and_scheduler: Callable[[str], None]

    def __init__(self, *, optimizer: torch.optim.Optimizer, guard: NonFiniteGuard, **given: Any):
        self.guard, self._given_optimizer = guard, optimizer
        super().__init__(**given, optimizers=(optimizer, None))  # type: ignore[call-arg]
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
        found = super().compute_loss(model, *args, **kwargs)  # type: ignore[misc]
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
            super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
            return
        for part, name in ((self.optimizer, OPTIMIZER_NAME), (self.lr_scheduler, SCHEDULER_NAME)):
            part.load_state_dict(torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True))


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
        """How a packed row is attended to; None before the choice, or if rows are not packed."""
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
        """The choice of all ranks. Each tries by itself: a wrapper for several would exchange what it holds, and the others
        wait for one that has failed."""
        tried = model.module if isinstance(model, DistributedDataParallel) else model
        own = choose(
            tried,
            self._longest,
            self.accelerator.device,
            self.model.dtype,
            lambda reason: next(filter(None, all_gather_object(reason)), ""),
        )
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


def longest_part(
    limits: BatchLimits, group: int, completion: int, shared: bool
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Prompts, completions and groups of the samples of the largest possible pass.

    Args:
        group: completions of a prompt.
        completion: tokens of the longest.
        shared: whether completions share their prompt.
    """
    fitting = (limits.tokens - limits.prompt) // completion if shared else 1
    together = min(max(fitting, 1), group if shared else 1)
    passes = max(1, limits.tokens // (limits.prompt + together * completion))
    owners = [number for number in range(passes) for _ in range(together)]
    return [[0] * limits.prompt for _ in owners], [[0] * completion for _ in owners], owners


def warm_up(model: torch.nn.Module, run: Callable[[], torch.Tensor], backward: Callable[[torch.Tensor], None]) -> None:
    """Forward and backward through `run`, whose gradient is zero.

    Args:
        model: the model of `run`, training as it does in a step.
        run: returns a number that depends on every trained weight.
        backward: runs the backward pass of a loss.
    """
    was_training = model.training
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
        model.train()
        with torch.enable_grad():  # Whoever comes first may only want to score.
            backward(run() * 0.0)
    model.zero_grad()
    model.train(was_training)


Updates = list[list[dict[str, Any]]]
"""Micro-batches of each update, in order; each holds tensors by name, and its rows."""


def as_plain(updates: Updates) -> list[list[dict[str, Any]]]:
    def plain(rows: ModelRows) -> dict[str, Any]:
        return {**vars(rows), "layout": None if rows.layout is None else asdict(rows.layout)}

    return [[{**inputs, "rows": plain(inputs["rows"])} for inputs in passes] for passes in updates]


def from_plain(state: Sequence[Sequence[Mapping[str, Any]]]) -> Updates:
    def rows(plain: Mapping[str, Any]) -> ModelRows:
        return ModelRows(**{**plain, "layout": None if plain["layout"] is None else PackedLayout(**plain["layout"])})

    return [[{**inputs, "rows": rows(inputs["rows"])} for inputs in passes] for passes in state]
