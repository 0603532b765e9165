"""Viewers of a run's metrics, one class for each option of the `tracking` group.

`metrics.jsonl`, which is always written, is authoritative; a viewer receives a copy, in files inside the run directory:
the same metrics under the same names, a few samples of each logged step, the configuration as in config.yaml (without
secrets), and the paths of checkpoints and logs. The constructor only checks that the package is installed, so that a
missing package is refused before a run starts; `start` imports it. TensorBoard's class needs torch and is in the room of training.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

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
        require_package("wandb")
        self.samples = samples
        self._options: dict[str, Any] = {"project": project, "mode": mode, "entity": entity or None}

    def start(self, directory: Path, resume_step: int | None) -> None:
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        named: dict[str, Any] = {"name": directory.name, "group": directory.name}
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


def require_package(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        remedy = f"pip install {package}, or choose tracking=files (metrics.jsonl and metrics.csv are written anyway)"
        raise InputError(InputProblem("tracking", f"needs the package {package}", got="not installed", remedy=remedy))
