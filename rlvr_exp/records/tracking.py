"""The metrics of a run: `metrics.jsonl` and `metrics.csv` always, and a copy to the chosen viewer.

Owns those files and the naming rule: metrics that depend on the machine are named `time/...` or `system/...`. Each step
has one row; metrics logged for the same step at several times share its row. A number that is not finite is null in
JSON and empty in CSV. Never decides what is logged.
"""

import csv
import importlib.util
import io
import json
import math
import netrc
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from rlvr_exp.config import run as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.seeds import derive
from rlvr_exp.records.directory import writing
from rlvr_exp.records.rollout_files import RolloutRow, When, to_row

Row = dict[str, Any]
"""Metrics of a step: its `step`, an integer, and numbers, None for what is not finite."""


class Sink(Protocol):
    """Receives copies of the logged rows, finite numbers only, between `start` and `close`."""

    samples: int
    """Number of samples that it shows of each logged step."""

    def start(self, directory: Path, resume_step: int | None) -> None: ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        """Show samples of a logged step, each a row of COLUMNS."""

    def close(self) -> None: ...


class Tracker:
    """Writes the metrics of a run directory. Owned by a single process of a run, rank 0.

    Args:
        directory: the run directory.
        sink: the viewer, built from the `tracking` node of the configuration; closed with the tracker.
        resume_step: keep the rows up to this step and continue after it. -1 keeps none: an interrupted run without a
            checkpoint starts over. None starts a new file, and is refused if rows exist.

    Raises:
        ValueError: rows exist and `resume_step` is None.
    """

    def __init__(self, directory: Path, sink: Sink, resume_step: int | None = None):
        self._jsonl, self._csv = directory / "metrics.jsonl", directory / "metrics.csv"
        kept = read_metrics(directory)
        if kept and resume_step is None:
            raise ValueError(f"{self._jsonl}: holds rows already; resume, or choose an empty run directory")
        self._rows = [row for row in kept if row["step"] <= (-1 if resume_step is None else resume_step)]
        self._columns: list[str] = []
        lines = [_line(row) for row in self._rows]
        write_text(self._jsonl, "".join(lines))
        self._last_at = sum(len(line.encode()) for line in lines[:-1])
        self._write_csv()
        sink.start(directory, resume_step)
        self._sink: Sink | None = sink

    @property
    def last(self) -> dict[str, float | int | None]:
        """The metrics of the last logged row, without its step; empty before any."""
        return {name: value for name, value in self._rows[-1].items() if name != "step"} if self._rows else {}

    @property
    def last_step(self) -> int:
        """The step of that row; 0 before any."""
        return int(self._rows[-1]["step"]) if self._rows else 0

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add to the row of a step; it has been written to the file when this returns.

        Raises:
            ValueError: the step is before the last one, a metric is in its row already or is named `step`, or the
                tracker is closed.
        """
        sink = self._sink
        if sink is None:
            raise ValueError("Tracker.log: closed already; log before close")
        self._refuse(step, metrics)
        added = {name: _finite(value) for name, value in metrics.items()}
        with writing(self._jsonl):
            if self._rows and self._rows[-1]["step"] == step:
                self._replace_last(added)
            else:
                self._append({"step": int(step), **added})
        sink.log(step, {name: value for name, value in added.items() if value is not None})

    def rates(self, when: When, step: int, rates: Mapping[str, Any]) -> None:
        """Send the viewer the rates of an evaluation as `before/NAME` or `after/NAME`, with the ends of their intervals.

        The files hold them elsewhere: `summary.json` and `evaluation/`.
        """
        if self._sink is not None and rates:
            ends = {"": "value", "/low": "low", "/high": "high"}
            found = {
                f"{when}/{name}{end}": getattr(rate, of) for name, rate in rates.items() for end, of in ends.items()
            }
            self._sink.log(step, found)

    def samples(self, rows: Sequence[RolloutRow], seed: int) -> None:
        """Send the viewer a few samples of a step. They are skipped if the step has no row yet."""
        sink = self._sink
        wanted = getattr(sink, "samples", 0)  # A user's own viewer may not have this attribute.
        if sink is not None and wanted and rows and self._rows and self._rows[-1]["step"] == rows[0].step:
            sink.table(rows[0].step, table(rows, wanted, seed))

    def _refuse(self, step: int, metrics: Mapping[str, float]) -> None:
        last: Row = self._rows[-1] if self._rows else {"step": -1}
        if step < last["step"]:
            raise ValueError(f"Tracker.log: got step {step} after step {last['step']}; log in rising order")
        if "step" in metrics:
            raise ValueError("Tracker.log: a metric may not be named 'step'; give the step as the first argument")
        twice = sorted(metrics.keys() & last.keys()) if step == last["step"] else []
        if twice:
            raise ValueError(f"Tracker.log: {', '.join(twice)} logged twice for step {step}; log each once a step")

    def _append(self, row: Row) -> None:
        self._rows.append(row)
        self._last_at = self._jsonl.stat().st_size
        _write_at(self._jsonl, self._last_at, _line(row))
        if row.keys() <= set(self._columns):
            _write_at(self._csv, self._csv.stat().st_size, _csv_text([row], self._columns))
        else:
            self._write_csv()

    def _replace_last(self, added: Row) -> None:
        """The longer line overwrites the shorter line in a single write."""
        self._rows[-1] |= added
        _write_at(self._jsonl, self._last_at, _line(self._rows[-1]))
        self._write_csv()

    def close(self) -> None:
        """Rewrite the complete CSV and close the viewer. Calling it twice is harmless."""
        if self._sink is not None:
            self._write_csv()
            self._sink.close()
            self._sink = None

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_csv(self) -> None:
        self._columns = list(dict.fromkeys(["step", *(name for row in self._rows for name in row)]))
        header = dict(zip(self._columns, self._columns, strict=True))
        write_text(self._csv, _csv_text([header, *self._rows], self._columns))


def read_metrics(directory: Path) -> list[Row]:
    """The rows of `metrics.jsonl`; empty without the file. An incomplete last line of a killed run is skipped."""
    path = directory / "metrics.jsonl"
    if not path.exists():
        return []
    *lines, _torn = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


def _finite(value: float) -> float | int | None:
    number = value if isinstance(value, int) else float(value)
    return number if math.isfinite(number) else None


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _csv_text(rows: list[Mapping[str, Any]], columns: list[str]) -> str:
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _write_at(path: Path, offset: int, text: str) -> None:
    """Write complete lines at once. Only the last line of a killed run can be incomplete; a full disk leaves complete lines."""
    data = memoryview(text.encode("utf-8"))
    handle = os.open(path, os.O_WRONLY)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(handle, data[done:], offset + done)
    except OSError:
        os.ftruncate(handle, offset)
        raise
    finally:
        os.close(handle)


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
    """`value`, a text without halves of surrogate pairs, which the viewers cannot write."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = value.encode("utf-8", "replace").decode()
    return f"{text[:MOST_TEXT]} [... {len(text) - MOST_TEXT} characters more]" if len(text) > MOST_TEXT else text


KEPT = ("checkpoints", "rollouts", "evaluation", "log.txt", "report.html")
"""Files and folders of a run directory that are listed by path. Rollouts contain each verdict with the verifier's log."""


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
    """Whether the package would find a key in the environment or in the file that `wandb login` writes."""
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
    """The text of config.yaml; empty without the file. It names secrets only by their environment variables."""
    path = directory / "config.yaml"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def paths(directory: Path) -> dict[str, str]:
    return {name: str((directory / name).absolute()) for name in KEPT}


def require_package(package: str, install: str = "") -> None:
    """Raises InputError: the package is not installed. `install`: its name for pip, if that is another one."""
    if importlib.util.find_spec(package) is None:
        remedy = f"pip install {install or package}, or choose tracking=files (metrics.jsonl and metrics.csv are written anyway)"
        raise InputError(InputProblem("tracking", f"needs the package {package}", got="not installed", remedy=remedy))
