"""Selection of the best step by a metric of its row, and early stopping."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.config.run import MEASURED, Select
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.core.sealed import check_sound
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import broadcast_object
from rlvr_exp.training.checkpoints import Checkpoints

_LOG = logging.getLogger(__name__)


class Selection:
    """Tracks the best step. Of equal values the later step is the best, since it was trained for longer; it does not
    reset `patience`.

    Args:
        settings: the `run.select` node as it is planned for the run (rlvr_exp.config.run.planned).
    """

    def __init__(self, settings: Select, checkpoints: Checkpoints, tracker: Tracker):
        self._settings, self._checkpoints, self._tracker = settings, checkpoints, tracker
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
        """The best checkpoint, if the selection is active and found any."""
        return self._checkpoints.best if self._settings.active and self.value is not None else None

    def is_best(self, step: int) -> bool:
        return self.value is not None and self.step == step

    def consider(self, step: int) -> None:
        """Compare the row of a step with the best; nothing if it has no row, or its row has not the metric."""
        found = self._settings.value(self._tracker.last) if self._tracker.last_step == step else None
        value = broadcast_object(found)
        if value is None or step == self._seen:
            return
        self._seen = step
        sign = 1.0 if self._settings.mode == "max" else -1.0
        gain = math.inf if self.value is None else sign * (value - self.value)
        self._waited = 0 if gain > 0 else self._waited + 1
        if gain >= 0:
            self.value, self.step = value, step

    def metrics(self) -> dict[str, float]:
        return {} if self.value is None else {"best/value": self.value, "best/step": self.step}

    def check(self) -> None:
        """Raises GuardStop if no row ever had the metric."""
        if self._settings.active and not self._seen:
            names = ", ".join(sorted(self._tracker.last))
            raise GuardStop(
                f"run.select.metric={self._settings.metric}: no row of metrics has it, so that no step is the best one. "
                f"Name one of: {names}. The run's checkpoints are sound"
            )

    def state_dict(self) -> dict[str, Any]:
        return {"by": self._by(), "value": self.value, "step": self.step, "waited": self._waited, "seen": self._seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state, and link `best` to the same checkpoint; if that checkpoint is lost, a warning is logged
        and the search starts over. It also starts over for another metric or other
        tasks."""
        if state["by"] != self._by():
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

    def _by(self) -> list[Any]:
        """The settings that make values comparable."""
        wanted = self._settings
        part = any(name in MEASURED for name in wanted.weights)
        measured = [wanted.split, wanted.tasks, wanted.samples] if part else []
        return [wanted.metric, wanted.mode, *measured]
