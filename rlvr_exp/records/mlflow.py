"""The option tracking=mlflow: a local database, which `mlflow server --backend-store-uri sqlite:///RUN/mlflow/runs.db` draws."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from rlvr_exp.config import run as options
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.tracking import COLUMNS, configuration, paths, require_package

LOCAL = "mlflow"
"""Folder of the run directory."""
MOST_PARAMS = 100
"""Parameters that MLflow takes at once."""


@dataclass
class MLflow(options.MLflow):
    """A run in the database of the folder `mlflow/`. The variable MLFLOW_TRACKING_URI names a server or another database.
    A resumed run opens a second run with the same tag `group`.

    Raises:
        InputError: the package is not installed.
    """

    def __post_init__(self) -> None:
        require_package("mlflow", "'rlvr_exp[mlflow]'")

    def start(self, directory: Path, resume_step: int | None) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        folder, elsewhere = directory.absolute() / LOCAL, os.environ.get("MLFLOW_TRACKING_URI")
        folder.mkdir(exist_ok=True)
        self._client = MlflowClient(tracking_uri=elsewhere or f"sqlite:///{folder}/runs.db")
        known = self._client.get_experiment_by_name(self.project)
        artifacts = None if elsewhere else folder.as_uri()
        experiment = known.experiment_id if known else self._client.create_experiment(self.project, artifacts)
        name = directory.absolute().name
        self._id = self._client.create_run(
            experiment, run_name=name, tags={"group": name, **paths(directory)}
        ).info.run_id
        text = configuration(directory)
        self._client.log_text(self._id, text, "config.yaml")
        params = [Param(_allowed(key), str(value)) for key, value in flat(yaml.safe_load(text) or {}).items()]
        for first in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self._id, params=params[first : first + MOST_PARAMS])

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(
            self._id, metrics=[Metric(_allowed(name), value, now, step) for name, value in metrics.items()]
        )

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        # A file for each step: a growing table is written completely each time.
        cells = {column: [str(row[place]) for row in rows] for place, column in enumerate(COLUMNS)}
        self._client.log_table(self._id, cells, f"samples/step_{step:06d}.json")

    def close(self) -> None:
        self._client.set_terminated(self._id)


def _allowed(name: str) -> str:
    """The name, with `_` for characters that MLflow refuses, such as the + in the name of a family."""
    return re.sub(r"[^\w./: -]", "_", name)
