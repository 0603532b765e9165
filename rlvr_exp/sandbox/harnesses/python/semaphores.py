"""The semaphores of `multiprocessing` for a candidate, which has neither a second process nor shared memory.

ThreadPool, Lock, RLock, Semaphore, Condition, Event, Barrier, Queue, Value and Array of `multiprocessing` use one
class, `_multiprocessing.SemLock`, which requests shared memory from the kernel. Here it is a class over threads, which
replaces it when a candidate imports that module, so that other candidates do not pay for it. Standard library only.
"""

import threading
import time
from types import ModuleType
from typing import Any

_RECURSIVE = 0
"""`kind` of a mutex that its owner may acquire repeatedly; any other kind counts."""


class SemLock:
    """Behaves like `_multiprocessing.SemLock` towards the threads of one process."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool):
        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, 0
        self._changed = threading.Condition(threading.Lock())
        self._value, self._taken, self._owner = value, 0, 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Acquire it; False: not within `timeout` seconds, or not at once where it must not block."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            if self.kind == _RECURSIVE and self._is_mine():
                self._taken += 1
                return True
            while self._value == 0:
                left = None if until is None else until - time.monotonic()
                if not block or (left is not None and left <= 0):
                    return False
                self._changed.wait(left)
            self._value, self._taken, self._owner = self._value - 1, self._taken + 1, threading.get_ident()
            return True

    def release(self) -> None:
        """Release it. Raises AssertionError for another thread's mutex, ValueError above `maxvalue`."""
        with self._changed:
            if self.kind == _RECURSIVE and not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self.kind != _RECURSIVE and self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._taken -= 1
            if self.kind != _RECURSIVE or self._taken == 0:
                self._value += 1
                self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *fault: Any) -> None:
        self.release()

    def _count(self) -> int:
        return max(0, self._taken)

    def _is_mine(self) -> bool:
        return self._taken > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return self._value == 0

    def _after_fork(self) -> None:
        """Nothing to do: there will be no fork."""


def serve_threads(name: str, module: ModuleType) -> None:
    """Called for each loaded module, before its first use."""
    if name == "_multiprocessing":
        module.SemLock = SemLock
    elif name == "multiprocessing.heap":
        module.Arena._dir_candidates = []  # /dev/shm does not exist: the temporary folder is used
