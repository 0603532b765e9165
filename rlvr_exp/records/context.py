"""The context that a stage receives with its configuration, and the result that it returns. No torch; owns no file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import Interrupted


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
        """Send the parent the run's progress; the events are those of rlvr_exp.launch.progress.Progress.

        Raises:
            Interrupted: a stop was requested, within a phase that has no step to finish (an evaluation).
        """
        self._send(event)
        self.heartbeat()
        if event.get("kind") == "step":
            self.steps = int(event["step"])
        if self.interrupted and event.get("kind") == "phase":
            raise Interrupted(f"stopped during {event.get('name', 'a phase')}")
