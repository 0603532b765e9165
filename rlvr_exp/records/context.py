"""The context of a stage, its result, and summary.json, which the process that knows the outcome writes once. No torch."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, INTERRUPTED, Interrupted
from rlvr_exp.core.files import write_json


@dataclass(frozen=True)
class StageResult:
    """What a stage measured: the body of summary.json. Rates are dataclasses or plain values."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 0
    """Update steps done."""
    reason: str = ""
    """Why the run ended before its last step, where it did."""


class RunContext:
    """A run from its stage's side.

    `interrupted` becomes true when a stop is requested: training then writes a checkpoint after the current step and
    raises Interrupted. `before`, `metrics` and `steps` are what the summary of an unfinished run contains: a stage sets
    the first two once it has measured them, the last follows from progress.
    """

    def __init__(self, directory: Path, send: Callable[[Mapping[str, Any]], None]):
        self.directory = directory
        self.interrupted = False
        self.before: Mapping[str, Any] = {}
        self.metrics: Mapping[str, Any] = {}
        self.steps = 0
        self.heartbeat: Callable[[], None] = lambda: None
        """Called at each progress event; set by the watchdog, where there is one."""
        self._send = send

    def notify(self, kind: str, text: str) -> None:
        """Send the parent a message other than progress: an `alarm`, for standard error, or the `reason` why the run
        ended."""
        self._send({"kind": kind, "text": text})

    def progress(self, **event: Any) -> None:
        """Send the parent the run's progress; the events are those of rlvr_exp.launch.console.Progress.

        Raises:
            Interrupted: a stop was requested, within a phase that has no step to finish (an evaluation).
        """
        self._send(event)
        self.heartbeat()
        if event.get("kind") == "step":
            self.steps = int(event["step"])
        if self.interrupted and event.get("kind") == "phase":
            raise Interrupted(f"stopped during {event.get('name', 'a phase')}")


SUMMARY, BENCHMARK = "summary.json", "benchmark.json"
"""Of a run; and beside it what a benchmark measured."""
COMPLETED = "completed"
STATUS = {DONE: COMPLETED, GUARD: "stopped", INTERRUPTED: "interrupted", BAD_INPUT: "failed", FAULT: "failed"}
"""The status of each exit code."""


def write_summary(directory: Path, stage: str, exit_code: int, seconds: float, result: StageResult) -> None:
    write_json(
        directory / SUMMARY,
        {
            "stage": stage,
            "status": STATUS[exit_code],
            "reason": result.reason,
            "steps": result.steps,
            "seconds": round(seconds, 3),
            "before": _plain(result.before),
            "after": _plain(result.after),
            "metrics": _plain(result.metrics),
        },
    )


def read_benchmark(directory: Path) -> Any:
    """What a benchmark measured."""
    return json.loads((directory / BENCHMARK).read_text(encoding="utf-8"))


def with_diagnosis(directory: Path, summary: Mapping[str, Any], cause: str) -> dict[str, Any]:
    """The summary with the first cause for which a run did not learn, written where a summary exists."""
    extended = {**summary, "diagnosis": cause}
    if (directory / SUMMARY).is_file():
        write_json(directory / SUMMARY, extended)
    return extended


def read_summary(directory: Path) -> dict[str, Any] | None:
    """The summary of a run; None where it has none yet."""
    path = directory / SUMMARY
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _plain(value: Any) -> Any:
    """The value as JSON types; a number that is not finite becomes null, as strict JSON requires."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
