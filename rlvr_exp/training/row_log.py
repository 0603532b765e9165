"""The row of metrics of a step: those of each role, those of the rollouts, those of the process.

With one role its metrics have no prefix; with several they are `ROLE/...`, or `time/ROLE/...` where they depend on the
machine.

The option tracking=tensorboard: events written by torch.utils.tensorboard, which the room of records may not import.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config import run as options
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.records.tracking_sinks import COLUMNS, configuration, paths, require_package
from rlvr_exp.training.learner import Learner

SHARED = {"success": "cascade/success/mean", "held-out loss": "held_out/loss", "held-out success": "held_out/pass_at_1"}
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
        now = time.perf_counter()
        row["time/step"] = (now - self._logged_at) / (step - self._logged_step)
        self._logged_at, self._logged_step = now, step
        row |= self._shared()
        self._tracker.log(step, row)
        self._tracker.samples(samples, seed)
        of_roles = (
            {"roles": shown} if self._named else {name: value for own in shown.values() for name, value in own.items()}
        )
        known = self._tracker.last  # What was measured after the step is in its row already.
        self._context.progress(
            kind="step", step=step, total=total, phases=_phases(row), **_figures(known, SHARED), **of_roles
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


def _phases(row: Mapping[str, float]) -> dict[str, float]:
    return {name: row[f"time/{name}"] for name in ("generate", "verify", "update") if f"time/{name}" in row}


@dataclass
class TensorBoard(options.TensorBoard):
    """Scalars and texts in `tensorboard/`; a resumed run hides what was logged past the step it resumes from.

    Raises:
        InputError: the package is not installed.
    """

    def __post_init__(self) -> None:
        require_package("tensorboard")

    def start(self, directory: Path, resume_step: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        step = max(0, resume_step or 0)
        hidden = None if resume_step is None else resume_step + 1
        self._writer = SummaryWriter(str(directory / "tensorboard"), purge_step=hidden)
        self._text(step, "config", f"```yaml\n{configuration(directory)}```")
        self._text(step, "paths", _markdown(("what", "path"), [*paths(directory).items()]))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        self._text(step, "samples", _markdown(COLUMNS, rows))

    def _text(self, step: int, tag: str, text: str) -> None:
        # The writer encodes strictly, and a completion may hold half of a surrogate pair.
        self._writer.add_text(tag, text.encode("utf-8", "replace").decode(), step)

    def close(self) -> None:
        self._writer.close()


def _markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table whose cells may hold any text."""
    lines = [[_cell(value) for value in row] for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return text.replace("\r", "").replace("\n", "<br>")
