"""A candidate's imports from the library and from packages: modules stay for the next case, reset to their first state.

Modules stay because a second import is slow (asyncio), impossible (numpy), or creates a second copy of classes of which
packages hold the first copy. Modules of the standard library get back the attributes that they had right after their
import; loggers lose their handlers. Modules that a candidate wrote, or put into sys.modules by hand, are removed.
Packages keep their state, except numpy's global random generator, which is reseeded.
`multiprocessing` gets semaphores that need no shared memory. Standard library only.
"""

import atexit
import sys
import threading
import time
import weakref
from collections.abc import Callable
from importlib import _bootstrap
from types import ModuleType
from typing import Any

_SEED = 0
_OWN = ("__main__", "candidate")
_RANDOM = "numpy.random"


class Attributes:
    """A snapshot of a module's attributes."""

    def __init__(self, name: str, module: ModuleType):
        self._name, self._now, self._then = name, vars(module), dict(vars(module))

    def put_back(self) -> None:
        """Submodules imported since then stay: the import system would not set them a second time."""
        now, then = self._now, self._then
        if now == then:
            return
        for name in now.keys() - then.keys():
            if now[name] is not sys.modules.get(f"{self._name}.{name}", self):
                del now[name]
        now.update(then)


class Imports:
    """Watches imports from now on. `home`: the candidate's folder. `loaded` modules are always restored."""

    def __init__(self, home: str):
        self._home = home + "/"
        self._loaded = dict(sys.modules)
        self._kept: dict[str, ModuleType] = {}
        self._fresh: list[Attributes] = []
        self._finders = list(sys.meta_path)
        _report_imports(self._note)

    def restore(self) -> None:
        """Restore the modules; to be called between two cases."""
        for name in list(sys.modules):
            if name not in self._loaded and name.partition(".")[0] not in self._kept:
                del sys.modules[name]
        sys.modules.update(self._loaded)
        sys.modules.update(self._kept)
        for attributes in self._fresh:
            attributes.put_back()
        added = [finder for finder in sys.meta_path if finder not in self._finders and self._is_packages(finder)]
        sys.meta_path[:] = self._finders + added
        for path in [path for path in sys.path_importer_cache if f"{path}/".startswith(self._home)]:
            del sys.path_importer_cache[path]
        _reset_known(self._kept)

    def _note(self, spec: Any, module: ModuleType) -> None:
        name = spec.name
        if name in self._loaded or name in self._kept or not self._is_library(spec):
            return
        self._kept[name] = module
        if name.partition(".")[0] in sys.stdlib_module_names:
            self._fresh.append(Attributes(name, module))

    def _is_library(self, spec: Any) -> bool:
        """Whether a module comes from a file that the candidate did not write, or from a package's own loader."""
        if spec.origin in ("built-in", "frozen"):
            return True
        places = [spec.origin] if isinstance(spec.origin, str) else list(spec.submodule_search_locations or ())
        if all(place.startswith("/") and not place.startswith(self._home) for place in places):
            return bool(places) or self._is_packages(spec.loader)
        return False

    def _is_packages(self, finder: Any) -> bool:
        module = (finder if isinstance(finder, type) else type(finder)).__module__
        return module not in _OWN and (module in self._kept or module in self._loaded)


def fit_imports() -> None:
    """Adapt modules as soon as they are imported: numpy's generator, which would seed itself from the clock, so that
    verdicts would be chance, and the parts of `multiprocessing` that need shared memory."""

    def fit(spec: Any, module: ModuleType) -> None:
        if spec.name == _RANDOM and hasattr(module, "seed"):
            module.seed(_SEED)
        serve_threads(spec.name, module)

    _report_imports(fit)


def _report_imports(note: Callable[[Any, ModuleType], None]) -> None:
    """Calls `note` with the specification of each module loaded from now on, and the module."""
    load = _bootstrap._load_unlocked

    def load_and_note(spec: Any) -> ModuleType:
        module = load(spec)
        note(spec, module)
        return module

    _bootstrap._load_unlocked = load_and_note


def _reset_known(kept: dict[str, ModuleType]) -> None:
    """Reset state that is not in attributes of modules."""
    weakref.finalize._shutdown = weakref.finalize._registered_with_atexit = False
    if "logging" in kept:
        _reset_logging(kept["logging"])
    if "asyncio" in kept:
        kept["asyncio"]._set_running_loop(None)
    if _RANDOM in kept:
        kept[_RANDOM].seed(_SEED)


def _reset_logging(logging: Any) -> None:
    for logger in [logging.root, *logging.root.manager.loggerDict.values()]:
        if isinstance(logger, logging.Logger):
            logger.handlers[:] = [one for one in logger.handlers if type(one) is logging.NullHandler]
            logger.filters.clear()
            logger.disabled = False
    logging.root.setLevel(logging.WARNING)
    logging.disable(logging.NOTSET)
    atexit.register(logging.shutdown)


_RECURSIVE = 0
"""`kind` of a mutex that its owner may acquire repeatedly; any other kind counts."""


class SemLock:
    """Behaves like `_multiprocessing.SemLock` towards the threads of one process.

    A candidate has neither a second process nor shared memory. Lock, Semaphore, Event, Queue, Value and the like of
    `multiprocessing` use this one class, which requests shared memory from the kernel. It is replaced when a candidate
    imports that module, so that other candidates do not pay for it.
    """

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
