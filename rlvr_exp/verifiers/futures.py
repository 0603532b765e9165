"""Chained futures, without a thread that waits."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

Got = TypeVar("Got")
Next = TypeVar("Next")


def completed_future(value: Got) -> Future[Got]:
    """A future that already holds its value."""
    done: Future[Got] = Future()
    done.set_result(value)
    return done


def then(first: Future[Got], continuation: "Callable[[Got], Next | Future[Next]]") -> Future[Next]:
    """A future of what `continuation` returns for the first future's result, directly or as another future."""
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
    """A future of the results of all, in their order; of the first fault where one has one."""
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
