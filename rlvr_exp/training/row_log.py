"""The row of metrics of a step: those of each role, those of the rollouts, those of the process.

With one role its metrics have no prefix; with several they are `ROLE/...`, or `time/ROLE/...` if they depend on the
machine.
"""

import time
from collections.abc import Callable, Mapping

from rlvr_exp.config.roles import teams
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.sandbox.tools import core_seconds
from rlvr_exp.training.learner import Learner

SHARED = {
    "success": next((f"{team.name}/success/mean" for team in teams()), ""),
    "held-out loss": "held_out/loss",
    "held-out success": "held_out/pass_at_1",
}
"""Figures beside a progress bar that belong to no role, and the metrics that they are; a learner has its own."""


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
        self._used = core_seconds()
        self._named = named

    def due(self, step: int) -> bool:
        return step % self._every == 0

    def write(self, step: int, total: int, samples: list[RolloutRow], seed: int) -> None:
        """Write the row of a step, counted from 1, and show its progress.

        Args:
            samples: rollouts of the step, for viewers that show some.
        """
        row: dict[str, float] = {}
        shown: dict[str, dict[str, float]] = {}
        for role, learner in self._learners.items():
            own = learner.row()
            shown[role] = _figures(own, learner.figures)
            row |= _of_role(role if self._named else "", own)
        now, used, steps = time.perf_counter(), core_seconds(), step - self._logged_step
        row["time/step"] = (now - self._logged_at) / steps
        row |= all_reduce_counters({"time/step_core_seconds": (used - self._used) / steps})
        self._logged_at, self._logged_step, self._used = now, step, used
        row |= self._shared()
        self._tracker.log(step, row)
        self._tracker.samples(samples, seed)
        of_roles = (
            {"roles": shown} if self._named else {name: value for own in shown.values() for name, value in own.items()}
        )
        phases = {name: row[f"time/{name}"] for name in ("generate", "verify", "update") if f"time/{name}" in row}
        known = self._tracker.last  # What was measured after the step is in its row already.
        self._context.progress(
            kind="step", step=step, total=total, phases=phases, **_figures(known, SHARED), **of_roles
        )


def _of_role(role: str, row: Mapping[str, float]) -> dict[str, float]:
    if not role:
        return dict(row)
    parts = {name: name.partition("/") for name in row}
    return {
        f"{head}/{role}/{rest}" if head in ("time", "system") else f"{role}/{name}": row[name]
        for name, (head, _, rest) in parts.items()
    }


def _figures(row: Mapping[str, float | None], names: Mapping[str, str]) -> dict[str, float]:
    return {name: value for name, key in names.items() if (value := row.get(key)) is not None}
