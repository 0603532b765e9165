"""Awaiting objects of the other process: each end runs its own coroutines in its own event loop.

The suite's loop is its test's loop; the solution's loop runs in a thread. Awaiting an object of the other end creates a
task for it there, which reports when it is done. Standard library only.
"""

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any


class Coroutines:
    """One end's tasks, and the futures of the tasks that it awaits. `peer` is the end itself."""

    def __init__(self, peer: Any):
        self._peer, self._tokens = peer, itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = {}
        self._tasks: dict[int, Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def driver(self, target: Any, name: str, args: tuple[Any, ...]) -> Any:
        """The iterator for `await`; None for any other special method."""
        return self.awaited(target).__await__() if name == "__await__" else None

    async def awaited(self, target: Any) -> Any:
        """The result of an awaitable of the other end."""
        loop = asyncio.get_running_loop()
        if self._peer.side == 0:
            self._loop = loop
        token, future = next(self._tokens), loop.create_future()
        self._waiting[token] = loop, future
        self._peer.request("spawn", token, target)
        try:
            return self._peer.rules.awaited(target, await future)
        except asyncio.CancelledError:
            if self._waiting.pop(token, None) is not None:
                self._peer.request("cancel", token)
            raise
        finally:
            self._waiting.pop(token, None)

    def settle(self, token: int, succeeded: bool, result: Any) -> None:
        """The other end's message that a task is done."""
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            waiting[0].call_soon_threadsafe(_settle, waiting[1], succeeded, result)

    def start(self, target: Any, token: int) -> None:
        """Create a task for an object of this end."""
        self._tasks[token] = asyncio.run_coroutine_threadsafe(self._run(target, token), self._running())

    def cancel(self, token: int) -> None:
        """End a task."""
        task = self._tasks.pop(token, None)
        if task is not None:
            task.cancel()

    def within(self, call: Callable[[], Any]) -> Any:
        """Call a function of this end where its event loop runs, so that it finds the loop."""
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(call())
            except BaseException as fault:  # any exception belongs to the caller
                done.set_exception(fault)

        self._running().call_soon_threadsafe(run)
        return done.result()

    async def _run(self, target: Any, token: int) -> None:
        try:
            outcome = (True, await target)
        except BaseException as fault:  # as above
            outcome = (False, fault)
        self._tasks.pop(token, None)
        self._peer.request("settle", token, None, outcome)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._loop.is_running():
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop


def driven(target: Any, peer: Any) -> Coroutine[Any, Any, Any] | None:
    """The coroutine that awaits `target` in the running event loop; None without a loop."""
    return peer.coroutines.awaited(target) if asyncio._get_running_loop() is not None else None


def _settle(future: asyncio.Future[Any], succeeded: bool, result: Any) -> None:
    if future.done():
        return
    if succeeded:
        future.set_result(result)
    elif isinstance(result, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(result if not isinstance(result, StopIteration) else RuntimeError(str(result)))
