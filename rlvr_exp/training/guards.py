"""The guards of a training run as one callback of its trainer: skipped updates, heartbeats, resources that run out.

rlvr_exp.algorithms.nonfinite_guard decides which updates are skipped, rlvr_exp.launch.watchdog holds the deadline,
rlvr_exp.training.guards_trend makes the forecasts; this callback calls them at the right moments of a step.
"""

from collections.abc import Mapping

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.config.guards import Guards as Options
from rlvr_exp.core.phase import UPDATE, go_over
from rlvr_exp.records.context import RunContext
from rlvr_exp.training.guards_trend import ResourceTrends


class Guards(TrainerCallback):
    """
    Args:
        options: the `run.guards` node.

    Attributes:
        updates: counts skipped updates; give it to the trainer as its `guard`, and to its checkpoints.
    """

    def __init__(self, options: Options, context: RunContext):
        self.updates = NonFiniteGuard(options.max_skipped)
        self._context, self._trends = context, ResourceTrends(context.directory, options.trend_steps)

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        """Raises GuardStop past the allowed number of skipped updates: here, once the last one is in its row."""
        self.updates.check(state.global_step)
        self._context.heartbeat()
        go_over(UPDATE)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        for line in self._trends.step(state.global_step, state.max_steps):
            self._context.progress(kind="note", text=line)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        self.updates.check(state.global_step, ended=True)

    def metrics(self) -> Mapping[str, float]:
        """Metrics for the row of a step."""
        return {**self.updates.metrics(), **self._trends.metrics()}
