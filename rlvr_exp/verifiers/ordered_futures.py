"""Pending verdicts, returned in the order of their requests, in bounded memory."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from rlvr_exp.tasks.formats.fields import RowId
from rlvr_exp.verifiers.base import WINDOW, Verdict

MOST_BYTES = 256 << 20
"""Bytes of rows whose verdict is pending."""
MOST_WAITING = 20_000
"""Completed verdicts that wait for an earlier row; about 1 KB each."""
POLL_S = 0.2


@dataclass(frozen=True)
class Pending:
    """One row whose verdict was requested."""

    id: RowId
    verdict: Future[Verdict]


class OrderedFutures:
    """A queue of rows in flight. A single thread adds and takes; verdicts may come from any thread."""

    def __init__(self) -> None:
        self._queue: deque[Pending] = deque()
        self._changed = threading.Condition()
        self._unfinished = self._bytes = 0

    def add(self, identity: RowId, verdict: Future[Verdict], size: int) -> None:
        """`size`: bytes that the row takes until its verdict is complete."""
        with self._changed:
            self._unfinished += 1
            self._bytes += size
        self._queue.append(Pending(identity, verdict))
        verdict.add_done_callback(lambda _: self._finished(size))

    @property
    def full(self) -> bool:
        """No further row should be added now."""
        many = self._unfinished >= WINDOW or self._bytes >= MOST_BYTES
        return many or len(self._queue) >= MOST_WAITING

    def take(self) -> Iterator[Pending]:
        """Rows at the head of the queue whose verdicts are complete."""
        while self._queue and self._queue[0].verdict.done():
            yield self._queue.popleft()

    def wait(self) -> None:
        """Wait for a verdict, but not for long: a signal may request a stop meanwhile."""
        with self._changed:
            if self._queue and not self._queue[0].verdict.done():
                self._changed.wait(POLL_S)

    def __len__(self) -> int:
        return len(self._queue)

    def take_before_last_done(self, seconds: float) -> Iterator[Pending]:
        """Rows before the last completed verdict, waiting for the gaps: no completed verdict is lost."""
        done = [index for index, pending in enumerate(self._queue) if pending.verdict.done()]
        count, deadline = (done[-1] + 1 if done else 0), time.monotonic() + seconds
        while count and time.monotonic() < deadline:
            for pending in self.take():
                count -= 1
                yield pending
            if count > 0:
                self.wait()
            else:
                return

    def _finished(self, size: int) -> None:
        with self._changed:
            self._unfinished -= 1
            self._bytes -= size
            self._changed.notify()
