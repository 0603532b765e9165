"""Optional viewers of a run's metrics: TensorBoard event files and W&B, both under the run directory.

The truth is `metrics.jsonl`; a sink is a copy for a viewer. Their packages are imported only when chosen. TensorBoard
events are written without torch.
"""

import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rlvr_exp.core.errors import InputError, Problem

PACKAGES = {"files": None, "tensorboard": "tensorboard", "wandb": "wandb"}


class Sink(Protocol):
    """Takes finite numbers only."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


def check_tracking(tracking: Any) -> None:
    """Look for the package of the chosen kind, without importing it: for the check before a run starts.

    Raises:
        InputError: an unknown kind, or its package is not installed.
    """
    if tracking.kind not in PACKAGES:
        raise InputError(
            Problem("tracking.kind", "unknown", got=str(tracking.kind), allowed=", ".join(PACKAGES), remedy="name one of them")
        )
    package = PACKAGES[tracking.kind]
    if package is not None and importlib.util.find_spec(package) is None:
        remedy = f"pip install {package}, or choose tracking=files (metrics.jsonl and metrics.csv are written anyway)"
        raise InputError(Problem("tracking.kind", f"needs the package {package}", got="not installed", remedy=remedy))


def open_sinks(directory: Path, tracking: Any, resume_step: int | None) -> list[Sink]:
    """The sinks of the chosen kind. Raises InputError like `check_tracking`."""
    check_tracking(tracking)
    if tracking.kind == "tensorboard":
        return [TensorBoard(directory / "tensorboard", resume_step)]
    if tracking.kind == "wandb":
        return [Wandb(directory, tracking.wandb)]
    return []


class TensorBoard:
    """Scalars in TensorBoard's own event format; a resumed run hides what was logged past the step it resumes from."""

    def __init__(self, directory: Path, resume_step: int | None):
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event = Event
        self._writer = EventFileWriter(str(directory))
        if resume_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=resume_step + 1, session_log=start))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        self._writer.close()


class Wandb:
    """A W&B run whose files lie in `wandb/` of the run directory. A resumed run opens a second one in the same group."""

    def __init__(self, directory: Path, options: Any):
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        self._run = wandb.init(
            dir=str(directory),
            project=options.project,
            entity=options.entity,
            mode=options.mode,
            name=directory.name,
            group=directory.name,
            settings=settings,
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()
