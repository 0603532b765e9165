"""The row of metrics of a step: those of each role, those of the rollouts, those of the process.

With one role its metrics have no prefix; with several they are `ROLE/...`, or `time/ROLE/...` where they depend on the
machine.
"""

import time
from collections.abc import Callable, Mapping

from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.training.learner import Learner

SHOWN = {"reward": ("reward/mean",), "success": ("success/mean", "cascade/success/mean"), "loss": ("loss",)}
"""Figures beside a progress bar, and the metrics that they are."""


class RowLog:
    """
    Args:
        every, done: steps from row to row, and those before this row.
        named: there are several roles, whether or not all learn.
        shared: returns metrics since the last row that belong to no role.
    """

    def __init__(
        self,
        tracker: Tracker,
        context: RunContext,
        learners: Mapping[str, Learner],
        shared: Callable[[], Mapping[str, float]],
        every: int,
        done: int,
        named: bool,
    ):
        self._tracker, self._context, self._learners, self._shared = tracker, context, learners, shared
        self._every, self._logged_step, self._logged_at = every, done, time.perf_counter()
        self._named = named

    def due(self, step: int) -> bool:
        return step % self._every == 0

    def write(self, step: int, total: int, samples: list[RolloutRow], seed: int) -> None:
        """Write the row of a step, counted from 1, and show its progress.

        Args:
            samples: rollouts of the step, for viewers that show some.
        """
        row: dict[str, float] = {}
        for role, learner in self._learners.items():
            row |= _of_role(role if self._named else "", learner.row())
        now = time.perf_counter()
        row["time/step"] = (now - self._logged_at) / (step - self._logged_step)
        self._logged_at, self._logged_step = now, step
        row |= self._shared()
        self._tracker.log(step, row)
        self._tracker.samples(samples, seed)
        self._context.progress(kind="step", step=step, total=total, **_shown(row))


def _of_role(role: str, row: Mapping[str, float]) -> dict[str, float]:
    if not role:
        return dict(row)
    parts = {name: name.partition("/") for name in row}
    return {
        f"{head}/{role}/{rest}" if head in ("time", "system") else f"{role}/{name}": row[name]
        for name, (head, _, rest) in parts.items()
    }


def _shown(row: Mapping[str, float]) -> dict[str, object]:
    """The few figures that fit beside a progress bar."""
    phases = {name: row[f"time/{name}"] for name in ("generate", "verify", "update") if f"time/{name}" in row}
    figures = {name: row[key] for name, keys in SHOWN.items() for key in keys if key in row}
    return {"phases": phases, **figures}
