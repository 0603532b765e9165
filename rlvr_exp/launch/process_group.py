"""Processes that live and die together: the ranks of a run on a single machine. Independent of what they do."""

import signal
import subprocess
import threading
import time
from queue import Empty, SimpleQueue

from rlvr_exp.core.errors import DONE, FAULT

Child = subprocess.Popen[bytes]

GRACE_FAULT_S, GRACE_S = 3.0, 30.0
"""Seconds that the other processes have once the first has ended: after a fault or a kill to log what they saw, else to
finish (the agreed end of a run: the last file, closing a viewer)."""


class ProcessGroup:
    """Started processes. The first failure decides how the run ended; the others are killed after a grace period."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._ends: SimpleQueue[int] = SimpleQueue()
        """Indices of processes in the order in which they ended."""
        self._killed = False
        self._first_failure: int | None = None
        self._stop_requested = False
        self._watch: threading.Thread | None = None

    def add(self, child: Child) -> None:
        self._children.append(child)
        if self._stop_requested:
            child.send_signal(signal.SIGTERM)  # The stop was requested while processes were still being started.

    def watch(self) -> None:
        """Start waiting for the processes to end; called once all are added."""
        for place in range(len(self._children)):
            threading.Thread(target=self._wait_for, args=(place,), daemon=True).start()
        self._watch = threading.Thread(target=self._end_together, daemon=True)
        self._watch.start()

    def wait(self) -> None:
        """Return when all have ended."""
        if self._watch is not None:
            self._watch.join()

    @property
    def failed(self) -> int:
        """Index of the process that failed first by itself; 0 where none did."""
        return self._first_failure or 0

    @property
    def returncode(self) -> int:
        return self._children[self.failed].returncode

    def request_stop(self) -> None:
        self._stop_requested = True
        for child in self._children:
            child.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the living processes and wait until they have ended."""
        self._killed = True
        living = [child for child in self._children if child.poll() is None]
        for child in living:
            child.kill()
        for child in living:
            child.wait()

    def _wait_for(self, place: int) -> None:
        self._children[place].wait()
        self._ends.put(place)

    def _end_together(self) -> None:
        left, deadline = len(self._children), None
        while left:
            try:
                place = self._ends.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except Empty:
                self.kill()
                deadline = None
                continue
            left -= 1
            code = self._children[place].returncode
            if code != DONE and self._first_failure is None and not self._killed:
                self._first_failure = place
            if deadline is None and not self._killed and (code != DONE or place == 0):
                deadline = time.monotonic() + (GRACE_FAULT_S if code == FAULT or code < 0 else GRACE_S)
