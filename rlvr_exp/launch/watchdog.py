"""The watchdog: log the current phase and the stacks of all threads when a process of a run has stalled.

They go to log.txt and to standard error, once per stall. The run continues unless it is configured to end. A thread checks the
time. If code that holds Python's lock blocks that thread too, the interpreter's timer writes the stacks a little later, without
the phase. Any progress of the run is a heartbeat.
"""

import faulthandler
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlvr_exp.config.run import Guards
from rlvr_exp.core.errors import GUARD
from rlvr_exp.core.phase import current
from rlvr_exp.records.context import RunContext, StageResult, write_summary

LOG = "log.txt"
LATER_S = 30.0
"""Delay of the interpreter's timer after the thread."""
LOOKS = 20
"""Number of checks within a deadline, at most every five seconds."""


class Watchdog:
    """Watches this process from `start` to `stop`.

    Args:
        context: the context of the run. Every progress event is a heartbeat, like `alive`.
        stage: for the summary of a run that the watchdog ends.
    """

    def __init__(self, options: Guards, context: RunContext, stage: str):
        self._deadline, self._ends = options.step_deadline_s, options.stop_past_deadline
        self._context, self._stage = context, stage
        self._began = self._last_sign = time.monotonic()
        self._reported = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._context.heartbeat = self.alive
        self.alive()
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._context.heartbeat = lambda: None
        faulthandler.cancel_dump_traceback_later()

    def alive(self) -> None:
        """A heartbeat: the deadline starts over."""
        self._last_sign, self._reported = time.monotonic(), False
        # Standard error of a child is its log.
        faulthandler.dump_traceback_later(self._deadline + LATER_S, exit=self._ends, file=sys.__stderr__ or sys.stderr)

    def _watch(self) -> None:
        while not self._over.wait(min(5.0, self._deadline / LOOKS)):
            if not self._reported and time.monotonic() - self._last_sign > self._deadline:
                self._reported = True
                self._report()

    def _report(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        (name, seconds), still = current(), time.monotonic() - self._last_sign
        head = (
            f"watchdog: no sign of progress for {still:.0f} s, after step {self._context.steps}; last phase: {name}, for "
            f"{seconds:.0f} s. The stacks of all threads are in {LOG}. If steps may take this long, raise "
            f"run.guards.step_deadline_s={self._deadline:g}"
        )
        log_stacks(self._context, f"{head}\n{stacks()}")
        if self._ends and not self._over.is_set():
            # The main thread has stalled and cannot respond.
            ended = StageResult(self._context.before, {}, self._context.metrics, self._context.steps, head)
            write_summary(self._context.directory, self._stage, GUARD, time.monotonic() - self._began, ended)
            os._exit(GUARD)


@contextmanager
def watched(options: Guards, context: RunContext, stage: str) -> Iterator[None]:
    """A watchdog during the block; none with a deadline of 0."""
    if not options.step_deadline_s:
        yield
        return
    watchdog = Watchdog(options, context, stage)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def stacks() -> str:
    """The stacks of all threads of this process, the latest call first."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def log_stacks(context: RunContext, text: str) -> None:
    """Write to log.txt of the run directory, and to the standard error that a person sees."""
    print(text, file=sys.stderr, flush=True)
    if not _is_stderr(context.directory / LOG):
        with open(context.directory / LOG, "a", encoding="utf-8") as log:
            log.write(text + "\n")
        return
    context.notify("alarm", text)


def _is_stderr(log: Path) -> bool:
    """Whether standard error is the log, as in the child of a run."""
    try:
        return os.path.samestat(os.fstat(sys.stderr.fileno()), os.stat(log))
    except (OSError, ValueError):
        return False
