"""The state that our trainers need to resume bit for bit, besides the weights, in a folder that all ranks write to.

Transformers itself saves and loads optimizer, schedule, random numbers and TRL's position; `rank_N.pt` adds what it
forgets: the loss and the metrics since the last row, counts of tokens, and the `trainer_state` of our trainers. Files hold
tensors and plain values, read with `weights_only`; under DeepSpeed, its own. rlvr_exp.training.checkpoints saves the weights.

Seams of the pinned Transformers: `_save_checkpoint` is called where `control.should_save` is set, after the step's row
and evaluation; `_init_training_state`, `_load_from_checkpoint` and `_run_epoch` are steps of `train`.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME, TRAINER_STATE_NAME

COUNTERS = ("_step", "_total_train_tokens")
"""Attributes of TRL's trainers, where they exist."""
OF_MACHINE = ("step_time",)
"""TRL's metrics that depend on the machine; no row logs them."""


class Stateful(Protocol):
    """Anything whose state is part of a checkpoint."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Resumable:
    """Mixin before a Transformers Trainer and before SkipNonFiniteUpdates, whose counts since the last row it saves."""

    _pending: Mapping[str, Any] | None = None
    """State to restore after training has begun, since its start resets it."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.metric_state: dict[str, Stateful] = {}
        """Further state that only rows of metrics depend on, by name."""
        super().__init__(*args, **kwargs)

    def save_training(self, folder: Path) -> None:
        """Write the state into an existing folder. All ranks call this."""
        self._save_optimizer_and_scheduler(str(folder))
        self._save_rng_state(str(folder))
        self.store_flos()
        if self.args.should_save:
            bare = dataclasses.replace(self.state, log_history=[], stateful_callbacks={})
            bare.save_to_json(str(folder / TRAINER_STATE_NAME))
        torch.save(self._figures() | {"own": self.trainer_state()}, self._own_file(folder))

    def load_training(self, folder: Path) -> None:
        """Load the state that `train(resume_from_checkpoint=folder)` does not; call it before, after loading weights."""
        device = self.args.device
        # A rank without an accelerator has the device "cpu:0", which torch does not load to.
        where = device if device.type == "cuda" else device.type
        state = torch.load(self._own_file(folder), map_location=where, weights_only=True)
        self._metrics["train"].update({name: list(values) for name, values in state["metrics"].items()})
        for name, value in state["counters"].items():
            setattr(self, name, value)
        self._of_row.update(state["of_row"])
        for name, part in self.metric_state.items():
            part.load_state_dict(state["notes"][name])
        self.load_trainer_state(state["own"])
        self._pending = state["loss"]

    def trainer_state(self) -> Mapping[str, Any]:
        """Tensors and plain values that a subclass adds."""
        return {}

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `trainer_state` returned."""

    def _own_file(self, folder: Path) -> Path:
        return folder / f"rank_{self.args.process_index}.pt"

    def _figures(self) -> dict[str, Any]:
        loss = {"sum": self._tr_loss, "total": self._total_loss_scalar, "logged_step": self._globalstep_last_logged}
        return {
            "loss": loss,
            "metrics": {name: list(each) for name, each in self._metrics["train"].items() if name not in OF_MACHINE},
            "of_row": dict(self._of_row),
            "counters": {name: getattr(self, name) for name in COUNTERS if hasattr(self, name)},
            "notes": {name: dict(part.state_dict()) for name, part in self.metric_state.items()},
        }

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Nothing: our checkpoints are written by a callback, `on_save`, which follows."""

    def _load_from_checkpoint(self, *_: Any, **__: Any) -> None:
        """Nothing: the weights are loaded already; Transformers does not find those of adapters, values and shards."""

    def _load_optimizer_and_scheduler(self, checkpoint: str) -> None:
        """Load through host memory: an optimizer moves its state to the device of its weights."""
        if self.is_deepspeed_enabled:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        for part, name in ((self.optimizer, OPTIMIZER_NAME), (self.lr_scheduler, SCHEDULER_NAME)):
            part.load_state_dict(torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True))

    def _init_training_state(self, max_steps: int, *rest: Any) -> tuple[int, int]:
        place = super()._init_training_state(max_steps, *rest)
        self.state.compute_steps(self.args, max_steps)  # This run decides how often rows are logged, not the checkpoint.
        return place

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        if self._pending is not None:
            loss, self._pending = self._pending, None
            self._tr_loss = loss["sum"].to(self.args.device)
            self._total_loss_scalar, self._globalstep_last_logged = loss["total"], loss["logged_step"]
        super()._run_epoch(*args, **kwargs)
