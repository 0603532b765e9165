"""Viewers of a run's metrics, one class for each option of the `tracking` group.

`metrics.jsonl`, which is always written, is authoritative; a viewer receives a copy, in files inside the run directory:
the same metrics under the same names, a few samples of each logged step, the configuration as in config.yaml (without
secrets), and the paths of checkpoints and logs. The constructor only checks that the package is installed, so that a
missing package is refused before a run starts; `start` imports it. TensorBoard's class needs torch and is in the room of training.
"""

import importlib.util
import netrc
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from rlvr_exp.config import run as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.records.rollout_files import RolloutRow, to_row

COLUMNS = ("task", "group", "sample", "outcome", "bucket", "reward", "prompt", "completion", "log")
MOST_TEXT = 2000
"""Characters of a text that are shown."""


def table(rows: Sequence[RolloutRow], count: int, seed: int) -> list[list[object]]:
    """At most `count` samples, a row of COLUMNS each."""
    return [[_cell(row[name]) for name in COLUMNS] for row in map(to_row, chosen(rows, count, seed))]


def chosen(rows: Sequence[RolloutRow], count: int, seed: int) -> list[RolloutRow]:
    """The highest reward, the lowest reward, then others at random; ties are broken at random too."""
    mixed = sorted(rows, key=lambda row: derive(seed, "samples", row.step, row.group, row.completion.sample))
    paid = sorted((row for row in mixed if row.reward is not None), key=lambda row: row.reward or 0.0)
    wanted = [*paid[-1:], *paid[:1], *mixed]
    found: dict[tuple[int, int], RolloutRow] = {}
    for row in wanted:
        found.setdefault((row.group, row.completion.sample), row)
    return list(found.values())[:count]


def _cell(value: object) -> object:
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[:MOST_TEXT]} [... {len(value) - MOST_TEXT} characters more]"
    return "" if value is None else value


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


class Files(options.Files):
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


@dataclass
class WandB(options.WandB):
    """A W&B run whose files are in `wandb/`. A resumed run opens a second W&B run in the same group.

    Raises:
        InputError: the package is not installed, or `online` without a key.
    """

    def __post_init__(self) -> None:
        require_package("wandb")
        if self.mode == "online" and not _has_key():
            what, remedy = "W&B has no key on this machine", "wandb login, or WANDB_API_KEY, or tracking.mode=offline"
            raise InputError(InputProblem("tracking.mode", what, self.mode, "", "", remedy))

    def start(self, directory: Path, resume_step: int | None) -> None:
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        named: dict[str, Any] = {"name": directory.name, "group": directory.name}
        config = {**(yaml.safe_load(configuration(directory)) or {}), "paths": paths(directory)}
        named |= {"project": self.project, "mode": self.mode, "entity": self.entity or None}
        try:
            self._run = wandb.init(dir=str(directory), settings=settings, config=config, **named)
        except wandb.errors.Error as fault:
            what, remedy = f"W&B cannot be reached: {fault}", "tracking.mode=offline, and wandb sync after the run"
            raise InputError(InputProblem("tracking.mode", what, self.mode, "", "", remedy)) from fault

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


def _has_key() -> bool:
    """Whether the package would find a key, in the environment or in the file where `wandb login` puts it."""
    if any(os.environ.get(name) for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE")):
        return True
    host = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai").rpartition("://")[2].partition("/")[0]
    places = (os.environ.get("NETRC") or "~/.netrc", "~/_netrc")
    for place in (Path(place).expanduser() for place in places):
        if not place.is_file():
            continue
        try:
            return netrc.netrc(str(place)).authenticators(host.partition(":")[0]) is not None
        except netrc.NetrcParseError:
            return False
    return False


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
