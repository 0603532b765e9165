"""The option tracking=trackio: a local database, which `TRACKIO_DIR=RUN/trackio trackio show` draws."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from rlvr_exp.config import run as options
from rlvr_exp.records.tracking import COLUMNS, configuration, paths, require_package


@dataclass
class Trackio(options.Trackio):
    """A run in the database of the folder `trackio/`. The variable TRACKIO_DIR names another folder, which several runs may share.
    A resumed run opens a second run in the same group.

    Raises:
        InputError: the package is not installed.
    """

    def __post_init__(self) -> None:
        require_package("trackio")

    def start(self, directory: Path, resume_step: int | None) -> None:
        os.environ.update(self.environment(directory) | os.environ)
        import trackio

        config = {**(yaml.safe_load(configuration(directory)) or {}), "paths": paths(directory)}
        machine = {"auto_log_gpu": False, "auto_log_cpu": False}  # The metrics have the figures of the machine.
        name = directory.absolute().name
        self._run = trackio.init(self.project, name=name, group=name, config=config, embed=False, **machine)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        import trackio

        cells = [[str(cell) for cell in row] for row in rows]
        self._run.log({"samples": trackio.Table(columns=list(COLUMNS), data=cells)}, step=step)

    def close(self) -> None:
        self._run.finish()
