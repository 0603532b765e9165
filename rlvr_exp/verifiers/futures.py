"""Chained futures, without a thread that waits; pending verdicts in the order of their requests, in bounded memory."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

WINDOW = 512
"""Requests in flight at once if there are many: far more than workers, far fewer than a data set has."""
Got = TypeVar("Got")
Next = TypeVar("Next")


def completed_future(value: Got) -> Future[Got]:
    """A future that already holds its value."""
    done: Future[Got] = Future()
    done.set_result(value)
    return done


def then(first: Future[Got], continuation: "Callable[[Got], Next | Future[Next]]") -> Future[Next]:
    """A future of the value that `continuation` returns for the first future's result, directly or as another future."""
    both: Future[Next] = Future()

    def settle(done: Future[Any], step: Callable[[Any], Any] | None) -> None:
        try:
            value = done.result() if step is None else step(done.result())
        except BaseException as fault:  # for whoever waits: a callback's own fault is seen by nobody
            both.set_exception(fault)
            return
        if isinstance(value, Future):
            value.add_done_callback(lambda later: settle(later, None))
        else:
            both.set_result(value)

    first.add_done_callback(lambda done: settle(done, continuation))
    return both


def gathered(several: "Sequence[Future[Got]]") -> Future[list[Got]]:
    """A future of the results of all, in their order; of the first fault, if there is one."""
    if not several:
        return completed_future([])
    everything: Future[list[Got]] = Future()
    left, lock = [len(several)], threading.Lock()

    def settle(_: Future[Got]) -> None:
        with lock:
            left[0] -= 1
            if left[0]:
                return
        try:
            everything.set_result([one.result() for one in several])
        except BaseException as fault:  # for whoever waits: a callback's own fault is seen by nobody
            everything.set_exception(fault)

    for one in several:
        one.add_done_callback(settle)
    return everything


MOST_BYTES = 256 << 20
"""Bytes of rows whose verdict is pending."""
MOST_WAITING = 20_000
"""Completed verdicts that wait for an earlier row; about 1 KB each."""
POLL_S = 0.2


@dataclass(frozen=True)
class Pending:
    """One row whose verdict was requested."""

    id: Any
    verdict: Future[Any]


class OrderedFutures:
    """A queue of rows in flight. A single thread adds and takes; verdicts may come from any thread."""

    def __init__(self) -> None:
        self._queue: deque[Pending] = deque()
        self._changed = threading.Condition()
        self._unfinished = self._bytes = 0

    def add(self, identity: Any, verdict: Future[Any], size: int) -> None:
        """`size`: bytes that the row takes until its verdict is complete."""
        with self._changed:
            self._unfinished += 1
            self._bytes += size
        self._queue.append(Pending(identity, verdict))

        def finished(_: Future[Any]) -> None:
            with self._changed:
                self._unfinished -= 1
                self._bytes -= size
                self._changed.notify()

        verdict.add_done_callback(finished)

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
