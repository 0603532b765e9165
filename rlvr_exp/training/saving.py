"""Callbacks that decide when checkpoints are written: when due, when a stop is requested, at the end, and at each new
best.

They are written after the step's row of metrics and its evaluation, so that a run resumed from a checkpoint logs the
next row as if it had never stopped.
"""

import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr_exp.config.select import MEASURED, Select
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted
from rlvr_exp.core.sealed import check_sound
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import any_rank, broadcast_object
from rlvr_exp.training.checkpoint_weights import Policies
from rlvr_exp.training.checkpoints import Checkpoints

EvalFn = Callable[[], Mapping[str, float]]
_LOG = logging.getLogger(__name__)


class BestCheckpoint(TrainerCallback):
    """Tracks the best step by a metric of its rows, and stops training when none follows.

    Of equal values the later step is the best, since it was trained for longer; it does not reset `patience`.

    Args:
        settings: the `run.select` node.
        measure: returns the current held-out success, under the names of rows.
    """

    def __init__(self, settings: Select, checkpoints: Checkpoints, tracker: Tracker, measure: EvalFn):
        self._settings, self._checkpoints, self._tracker, self._measure = settings, checkpoints, tracker, measure
        self.value: float | None = None
        """The best value so far."""
        self.step = 0
        """The step of the best value."""
        self._waited = 0
        self._seen = 0
        """The last step with a value."""

    @property
    def stopped(self) -> bool:
        return 0 < self._settings.patience <= self._waited

    @property
    def best_path(self) -> Path | None:
        """The best checkpoint, where the selection is active and found any."""
        return self._checkpoints.best if self._settings.active and self.value is not None else None

    def is_best(self, step: int) -> bool:
        return self.value is not None and self.step == step

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        every = self._settings.every_steps
        if every and (state.global_step % every == 0 or state.global_step >= state.max_steps):
            self._tracker.log(state.global_step, self._measure())
            self._consider(state.global_step, control)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        if self._settings.metric not in MEASURED:
            self._consider(state.global_step, control)

    def _consider(self, step: int, control: TrainerControl) -> None:
        found = self._tracker.last.get(self._settings.metric) if self._tracker.last_step == step else None
        value = broadcast_object(found)
        if value is None or step == self._seen:
            return
        self._seen = step
        sign = 1.0 if self._settings.mode == "max" else -1.0
        gain = math.inf if self.value is None else sign * (value - self.value)
        self._waited = 0 if gain > 0 else self._waited + 1
        if gain >= 0:
            self.value, self.step = value, step
            control.should_save = True
        control.should_training_stop |= self.stopped

    def metrics(self) -> dict[str, float]:
        return {} if self.value is None else {"best/value": self.value, "best/step": self.step}

    def check(self) -> None:
        """Raises GuardStop where no row ever had the metric."""
        if self._settings.active and not self._seen:
            names = ", ".join(sorted(self._tracker.last))
            raise GuardStop(
                f"run.select.metric={self._settings.metric}: no row of metrics has it, so that no step is the best one. "
                f"Name one of: {names}. The run's checkpoints are sound"
            )

    def state_dict(self) -> dict[str, Any]:
        by = [self._settings.metric, self._settings.mode]
        return {"by": by, "value": self.value, "step": self.step, "waited": self._waited, "seen": self._seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state, and link `best` to the same checkpoint; where that checkpoint is lost, a warning is logged
        and the search starts over. It also starts over for another metric."""
        if state["by"] != [self._settings.metric, self._settings.mode]:
            return
        self.value, self.step, self._waited, self._seen = (state[key] for key in ("value", "step", "waited", "seen"))
        if self.value is None:
            return
        try:
            check_sound(self._checkpoints.at(self.step))
            self._checkpoints.mark_best(self.step)
        except InputError as fault:
            self.value, self._waited = None, 0
            _LOG.warning("the best checkpoint is lost, the best from here on takes its place: %s", fault)


class CheckpointWriter(TrainerCallback):
    """Writes checkpoints; a run whose stop was requested writes one first.

    The checkpoint of the last step is written only when training has ended: rows of metrics may be rarer than steps,
    and the last row is logged then. A run resumed from a checkpoint without that row would never log it.
    """

    def __init__(
        self, checkpoints: Checkpoints, policies: Policies, context: RunContext, best_checkpoint: BestCheckpoint
    ):
        self._checkpoints, self._policies, self._context, self._best_checkpoint = (
            checkpoints,
            policies,
            context,
            best_checkpoint,
        )
        self._stopping = self._last = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        # Rows of metrics may be rarer than steps; a run that ends here reports the step of its checkpoint.
        self._context.steps = state.global_step
        self._last = control.should_training_stop or state.global_step >= state.max_steps
        # All ranks stop at the same step, whenever each received the request; after the last step the evaluation stops.
        self._stopping = any_rank(self._context.interrupted) and not self._last
        control.should_save |= self._stopping or self._checkpoints.due(state.global_step)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        if self._last:
            return
        self._save(state.global_step)
        if self._stopping:
            raise Interrupted(f"stopped at step {state.global_step} of {state.max_steps}; a checkpoint was written")

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        self._save(state.global_step)

    def _save(self, step: int) -> None:
        self._checkpoints.save(step, self._policies)
        if self._best_checkpoint.is_best(step):
            self._checkpoints.mark_best(step)
