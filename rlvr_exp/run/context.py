"""What a stage is given besides its configuration, and what it gives back. No torch; owns no file."""

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
    """Why the run ended where it did, when that is not its last step."""


class RunContext:
    """One run as its stage sees it.

    `interrupted` becomes true when the run is asked to stop: training then writes a checkpoint after the step it is in
    and raises Interrupted. `before`, `metrics` and `steps` are what a run that does not reach its end still has to
    tell: a stage sets the first two when it has measured them, the last follows from progress.
    """

    def __init__(self, directory: Path, send: Callable[[Mapping[str, Any]], None]):
        self.directory = directory
        self.interrupted = False
        self.before: Mapping[str, Any] = {}
        self.metrics: Mapping[str, Any] = {}
        self.steps = 0
        self.heartbeat: Callable[[], None] = lambda: None
        """Called at each progress: the watchdog's, where there is one."""
        self._send = send

    def notify(self, kind: str, text: str) -> None:
        """Tell the parent something beside progress: an `alarm`, for standard error, or the `reason` why the run ended."""
        self._send({"kind": kind, "text": text})

    def progress(self, **event: Any) -> None:
        """Tell the parent how far the run is; the events are those of rlvr_exp.run.progress.Progress.

        Raises:
            Interrupted: the run was asked to stop, within a phase that has no step to finish (an evaluation).
        """
        self._send(event)
        self.heartbeat()
        if event.get("kind") == "step":
            self.steps = int(event["step"])
        if self.interrupted and event.get("kind") == "phase":
            raise Interrupted(f"stopped during {event.get('name', 'a phase')}")
