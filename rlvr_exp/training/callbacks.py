"""Callbacks that a run adds to a trainer: rows of metrics and progress. Checkpoints are written by rlvr_exp.training.saving,
guards are in rlvr_exp.training.guards.

Metrics are renamed to the project's own names here, in one table, so that a run's files do not change with TRL.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import VerifiedCompletion
from rlvr_exp.records.tracking import Tracker

NAMES = {
    "loss": "loss",
    "eval_loss": "held_out/loss",
    "grad_norm": "grad_norm",
    "grad_norm/max": "grad_norm/max",
    "grad_norm/after": "grad_norm/after",
    "grad_norm/clipped": "grad_norm/clipped",
    "learning_rate": "learning_rate",
    "kl": "kl",
    "clip_ratio/low_mean": "clip/low",
    "clip_ratio/high_mean": "clip/high",
    "cispo_clip_ratio": "clip/high",
    "num_tokens": "tokens/seen",
    "policy/loss": "policy/loss",
    "value/loss": "value/loss",
    "value/clipped": "value/clipped",
    "value/explained_variance": "value/explained_variance",
    "kl/old": "kl/old",
    "replay/groups": "replay/groups",
    "replay/weight": "replay/weight",
    "mean_token_accuracy": "token_accuracy",
}
"""TRL's name of a metric -> ours. Metrics that are not listed are not logged."""


class MetricsLogger(TrainerCallback):
    """Logs one row per logged step: the trainer's metrics and those that `extra()` adds.

    Args:
        updated: called as soon as the weights of a step are updated.
        sampled: returns the rollouts of the current step, for viewers that show some.
    """

    def __init__(
        self,
        tracker: Tracker,
        context: RunContext,
        extra: Callable[[], Mapping[str, float]] = dict,
        updated: Callable[[], None] = lambda: None,
        sampled: Callable[[], Sequence[VerifiedCompletion]] | None = None,
    ):
        self._tracker, self._context, self._extra, self._updated = tracker, context, extra, updated
        self._sampled = sampled
        self._logged_at, self._logged_step = time.perf_counter(), 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        self._logged_at, self._logged_step = time.perf_counter(), state.global_step

    def on_optimizer_step(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        self._updated()

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs=None, **_):
        row = {NAMES[name]: float(value) for name, value in (logs or {}).items() if name in NAMES and value is not None}
        if not row:
            return
        first = state.global_step != self._logged_step
        row |= self._once(state.global_step)
        self._tracker.log(state.global_step, row)
        if first and self._sampled is not None:
            self._tracker.samples(self._sampled(), args.seed)
        self._context.progress(kind="step", step=state.global_step, total=state.max_steps, **_shown(row))

    def _once(self, step: int) -> dict[str, float]:
        """Wall seconds per step since the last row, and the extra metrics; empty for a second row of the same step."""
        if step == self._logged_step:
            return {}
        now = time.perf_counter()
        each = (now - self._logged_at) / (step - self._logged_step)
        self._logged_at, self._logged_step = now, step
        return {"time/step": each, **self._extra()}


def _shown(row: Mapping[str, float]) -> dict[str, object]:
    """The few figures that fit beside a progress bar."""
    phases = {name: row[f"time/{name}"] for name in ("generate", "verify", "update") if f"time/{name}" in row}
    figures = {"reward": row.get("reward/mean"), "success": row.get("success/mean"), "loss": row.get("loss")}
    return {"phases": phases, **{name: value for name, value in figures.items() if value is not None}}
