"""Viewers of a run's metrics, one class for each option of the `tracking` group.

`metrics.jsonl`, which is always written, is authoritative; a viewer receives a copy, in files inside the run directory:
the same metrics under the same names, a few samples of each logged step, the configuration as in config.yaml (without
secrets), and the paths of checkpoints and logs. The constructor only checks that the package is installed, so that a
missing package is refused before a run starts; `start` imports it. TensorBoard events are written without torch.
"""

import importlib.util
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import yaml

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.tracking_samples import COLUMNS

KEPT = ("checkpoints", "rollouts", "evaluation", "log.txt", "report.html")
"""Files and folders of a run directory that are listed by path: rollouts hold each verdict with the verifier's log."""


class Sink(Protocol):
    """Receives copies of the logged rows, finite numbers only, between `start` and `close`."""

    samples: int
    """Number of samples that it shows of each logged step."""

    def start(self, directory: Path, resume_step: int | None) -> None: ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        """Show samples of a logged step, each a row of COLUMNS."""

    def close(self) -> None: ...


class Files:
    """No viewer: only the run directory's own files."""

    samples = 0

    def start(self, directory: Path, resume_step: int | None) -> None:
        pass

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        pass

    def close(self) -> None:
        pass


class TensorBoard:
    """Scalars and texts in `tensorboard/`; a resumed run hides what was logged past the step it resumes from.

    Args:
        samples: shown of each logged step.

    Raises:
        InputError: the package is not installed.
    """

    def __init__(self, samples: int = 0) -> None:
        _require("tensorboard")
        self.samples = samples

    def start(self, directory: Path, resume_step: int | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(directory / "tensorboard"))
        if resume_step is not None:
            session = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=resume_step + 1, session_log=session))
        self._text(max(0, resume_step or 0), "config", f"```yaml\n{configuration(directory)}```")
        self._text(max(0, resume_step or 0), "paths", _markdown(("what", "path"), [*paths(directory).items()]))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        self._text(step, "samples", _markdown(COLUMNS, rows))

    def _text(self, step: int, tag: str, text: str) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING

        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype=DT_STRING, tensor_shape=shape, string_val=[text.encode("utf-8", "replace")])
        shown = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        value = Summary.Value(tag=tag, metadata=shown, tensor=tensor)
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))

    def close(self) -> None:
        self._writer.close()


class WandB:
    """A W&B run whose files are in `wandb/`. A resumed run opens a second W&B run in the same group.

    Args:
        project: where the run is listed.
        mode: `offline` only writes files; `online` also sends them.
        entity: team or user; empty for the account's default.
        samples: shown of each logged step.

    Raises:
        InputError: the package is not installed.
    """

    def __init__(self, project: str, mode: str, entity: str = "", samples: int = 0):
        _require("wandb")
        self.samples = samples
        self._options = {"project": project, "mode": mode, "entity": entity or None}

    def start(self, directory: Path, resume_step: int | None) -> None:
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        named = {"name": directory.name, "group": directory.name}
        config = {**(yaml.safe_load(configuration(directory)) or {}), "paths": paths(directory)}
        self._run = wandb.init(dir=str(directory), settings=settings, config=config, **named, **self._options)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        import wandb

        # A new table for each step: a growing table is written completely each time, and only its last state is shown.
        cells = [[str(cell) for cell in row] for row in rows]
        self._run.log({"samples": wandb.Table(columns=list(COLUMNS), data=cells)}, step=step)

    def close(self) -> None:
        import wandb

        self._run.finish()
        # finish alone returns before its service has written the last rows (seen with 0.31 on a busy machine)
        wandb.teardown()


def configuration(directory: Path) -> str:
    """The text of config.yaml; empty where there is none. It names secrets only by their environment variables."""
    path = directory / "config.yaml"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def paths(directory: Path) -> dict[str, str]:
    return {name: str((directory / name).absolute()) for name in KEPT}


def _markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table whose cells may hold any text."""
    lines = [[_cell(value) for value in row] for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return text.replace("\r", "").replace("\n", "<br>")


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        remedy = f"pip install {package}, or choose tracking=files (metrics.jsonl and metrics.csv are written anyway)"
        raise InputError(InputProblem("tracking", f"needs the package {package}", got="not installed", remedy=remedy))
