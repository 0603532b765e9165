"""Viewers of a run's metrics, one class for each option of the `tracking` group.

The truth is `metrics.jsonl`, which is always written; a viewer gets a copy, in files under the run directory. Building
one only looks whether its package is installed, so that a missing one is refused before a run starts; `start` imports
it. TensorBoard events are written without torch.
"""

import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rlvr_exp.core.errors import InputError, Problem


class Sink(Protocol):
    """Takes copies of the logged rows, finite numbers only, between `start` and `close`."""

    def start(self, directory: Path, resume_step: int | None) -> None: ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class Files:
    """No viewer: the run directory's own files alone."""

    def start(self, directory: Path, resume_step: int | None) -> None:
        pass

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def close(self) -> None:
        pass


class TensorBoard:
    """Scalars in `tensorboard/`; a resumed run hides what was logged past the step it resumes from.

    Raises:
        InputError: the package is not installed.
    """

    def __init__(self) -> None:
        _require("tensorboard")

    def start(self, directory: Path, resume_step: int | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(directory / "tensorboard"))
        if resume_step is not None:
            again = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=resume_step + 1, session_log=again))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        self._writer.close()


class WandB:
    """A W&B run whose files lie in `wandb/`. A resumed run opens a second one in the same group.

    Args:
        project: where the run is listed.
        mode: `offline` writes files alone; `online` sends them too.
        entity: team or user; empty for the account's default.

    Raises:
        InputError: the package is not installed.
    """

    def __init__(self, project: str, mode: str, entity: str = ""):
        _require("wandb")
        self._options = {"project": project, "mode": mode, "entity": entity or None}

    def start(self, directory: Path, resume_step: int | None) -> None:
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        named = {"name": directory.name, "group": directory.name}
        self._run = wandb.init(dir=str(directory), settings=settings, **named, **self._options)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        import wandb

        self._run.finish()
        # finish alone returns before its service has written the last rows (seen with 0.31 on a busy machine)
        wandb.teardown()


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        remedy = f"pip install {package}, or choose tracking=files (metrics.jsonl and metrics.csv are written anyway)"
        raise InputError(Problem("tracking", f"needs the package {package}", got="not installed", remedy=remedy))
