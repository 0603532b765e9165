"""The context of a stage, its result, and summary.json. Never imports torch."""

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
    """The measurements of a stage: the body of summary.json. Rates are dataclasses or plain values."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 0
    """Update steps done."""
    reason: str = ""
    """The reason why the run ended before its last step; else empty."""


class RunContext:
    """The run as its stage sees it.

    `interrupted` becomes true when a stop is requested: training then writes a checkpoint after the current step and
    raises Interrupted. The summary of an unfinished run contains `before`, `metrics` and `steps`. A stage sets the first two
    after measuring them; the steps follow from progress.
    """

    def __init__(self, directory: Path, send: Callable[[Mapping[str, Any]], None]):
        self.directory = directory
        self.interrupted = False
        self.before: Mapping[str, Any] = {}
        self.metrics: Mapping[str, Any] = {}
        self.steps = 0
        self.heartbeat: Callable[[], None] = lambda: None
        """Called at each progress event. The watchdog sets it."""
        self._send = send

    def notify(self, kind: str, text: str) -> None:
        """Send the parent a message: an `alarm` for standard error, or the `reason` for the end of the run."""
        self._send({"kind": kind, "text": text})

    def progress(self, **event: Any) -> None:
        """Send the parent an event of rlvr_exp.launch.console.Progress.

        Raises:
            Interrupted: a stop was requested during a phase without steps, such as an evaluation.
        """
        self._send(event)
        self.heartbeat()
        if event.get("kind") == "step":
            self.steps = int(event["step"])
        if self.interrupted and event.get("kind") == "phase":
            raise Interrupted(f"stopped during {event.get('name', 'a phase')}")


SUMMARY, BENCHMARK = "summary.json", "benchmark.json"
"""Files of every run, and of a benchmark."""
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
    """The measurements of a benchmark."""
    return json.loads((directory / BENCHMARK).read_text(encoding="utf-8"))


def with_diagnosis(directory: Path, summary: Mapping[str, Any], cause: str) -> dict[str, Any]:
    """The summary with the first cause of a run that did not learn. Written to the file if it exists."""
    extended = {**summary, "diagnosis": cause}
    if (directory / SUMMARY).is_file():
        write_json(directory / SUMMARY, extended)
    return extended


def read_summary(directory: Path) -> dict[str, Any] | None:
    """The summary of a run; None for a run without a summary."""
    path = directory / SUMMARY
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _plain(value: Any) -> Any:
    """The value as JSON types. Non-finite numbers become null, as strict JSON requires."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
