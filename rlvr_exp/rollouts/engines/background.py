"""A coroutine in a thread of its own, whose results are iterated over while it goes on."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from rlvr_exp.core.errors import Interrupted

Result = TypeVar("Result")
POLL_S = 0.2
"""How soon a requested stop is seen."""
_END = object()


def results_of(
    work: Callable[[Callable[[Result], None]], Coroutine[Any, Any, None]], interrupted: Callable[[], bool]
) -> Iterator[Result]:
    """Yield what the coroutine emits, as it comes. Where the iterator is left early, the coroutine is cancelled and has
    ended before that returns.

    Args:
        work: given what it emits a result with, the coroutine.

    Raises:
        Interrupted: a stop was requested. Whatever the coroutine raises, after all that it had emitted.
    """
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    loop, faults = asyncio.new_event_loop(), []

    async def worked() -> None:
        await work(found.put)

    task = loop.create_task(worked())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        except BaseException as fault:  # Raised where the results are awaited.
            faults.append(fault)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            found.put(_END)

    thread = threading.Thread(target=run, name="engine", daemon=True)
    thread.start()
    try:
        yield from _until_end(found, interrupted)
    finally:
        if thread.is_alive():
            _cancel(loop, task)
        thread.join()
    if faults:
        raise faults[0]


def _until_end(found: "queue.SimpleQueue[Any]", interrupted: Callable[[], bool]) -> Iterator[Any]:
    while True:
        if interrupted():
            raise Interrupted("stopped while the engine was asked for completions")
        try:
            one = found.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if one is _END:
            return
        yield one


def _cancel(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
    try:
        loop.call_soon_threadsafe(task.cancel)
    except RuntimeError:  # The loop has just closed by itself.
        pass
