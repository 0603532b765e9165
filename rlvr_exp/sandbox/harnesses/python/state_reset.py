"""Fresh state for each case of a candidate: its module, and the interpreter's state after the previous case.

Owns the candidate's module (`candidate` for functions, `__main__` for programs, each with its own builtins) and
restoring the process between cases: entries of sys.modules, attributes of the standard library's modules (those in
`_WATCHED`, and those that a case imports) and of sys, sys.path and the like, the environment, locale and time zone,
random's state, warnings, signal handlers, masks and timers, exit handlers, tracing, recursion and digit limits, the
collector's thresholds, the decimal contexts, the current directory and its files.

Imported modules stay for the next case, reset to their first state, because a second import is slow (asyncio),
impossible (numpy), or creates a second copy of classes while packages hold the first copy. Modules of the standard
library get back the attributes that they had right after their import; loggers lose their handlers. Modules that a
candidate wrote, or put into sys.modules by hand, are removed. Packages keep their state, except numpy's global random
generator, which is reseeded. `multiprocessing` gets semaphores that need no shared memory.

Not restored: threads that keep running, the state of packages, and the content of objects that modules of the standard
library share (classes that were patched, registries). State that a hostile candidate carries from case to case is no
harm: its process can only send values, to be compared with expected values that it does not have.
Standard library only.
"""

import atexit
import builtins
import contextvars
import decimal
import gc
import importlib
import importlib.machinery
import linecache
import locale
import os
import random
import signal
import sys
import threading
import time
import types
import warnings
import weakref
from _sitebuiltins import Quitter, _Helper
from collections.abc import Callable
from functools import cache
from importlib import _bootstrap
from typing import Any

from rlvr_exp.sandbox.harnesses.python.reporter import SOURCE, OutputCap

_WATCHED = [
    importlib.import_module(name)
    for name in "bisect collections copy datetime decimal fractions functools heapq io itertools json math"
    " operator os posixpath random re string struct sys textwrap threading time warnings".split()
]
"""Loaded once here, at no cost in forks; restored if a case changes their attributes."""
for _name in "array dataclasses contextlib enum abc typing".split():
    importlib.import_module(_name)

_BUILTINS = dict(vars(builtins)) | {"exit": Quitter("exit", "Ctrl-D"), "quit": Quitter("quit", "Ctrl-D")}
_BUILTINS["help"] = _Helper()
"""The workers start without `site`, which would define these three."""
_SIGNALS = [signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP]
_SIGNALS += [signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU]
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_RECURSION = 1000 + 32
"""Python's own limit, and the frames below a candidate."""
_SEED, _UMASK = 0, 0o077
_SPARES = 4
_spares: list[types.ModuleType] = []


def begin(source: str) -> None:
    """Set up the state that all cases of a candidate share."""
    sys.argv[:] = [SOURCE]
    sys.setrecursionlimit(_RECURSION)
    os.environ["TMPDIR"] = os.getcwd()  # the only folder that can be written to
    _seed()
    linecache.cache[SOURCE] = (len(source), None, source.splitlines(keepends=True), SOURCE)  # inspect, tracebacks


@cache
def _seed() -> None:
    """Without seeds verdicts would be chance. The forks have the zygote's seeds, and seed nothing themselves."""
    fit_imports()
    random.seed(_SEED)


def keep_spares() -> None:
    """Builtins for a candidate's first modules: creating them touches every builtin."""
    _spares.extend(_own_builtins() for _ in range(_SPARES))


def _own_builtins() -> types.ModuleType:
    own = types.ModuleType("builtins")
    own.__dict__.update(_BUILTINS)
    return own


def new_module(name: str) -> types.ModuleType:
    """An empty module, known as `name` and as `__main__`. A candidate that patches builtins patches its own."""
    own = _spares.pop() if _spares else _own_builtins()
    module = types.ModuleType(name)
    module.__dict__.update(__builtins__=own, __file__=SOURCE)
    if name != "__main__":
        module.__dict__.update(__package__="", __spec__=importlib.machinery.ModuleSpec(name, None, origin=SOURCE))
    sys.modules.update({"builtins": own, "__main__": module, name: module})
    return module


def in_own_context(call: Callable[..., Any], *args: Any) -> Any:
    """Call with fresh context variables, among them the decimal context."""
    return contextvars.Context().run(call, *args)


def is_open(stream: Any) -> bool:
    """Whether it is neither closed nor detached from its buffer."""
    try:
        return not stream.closed
    except ValueError:
        return False
    except AttributeError:  # a stream of the candidate's own
        return True


class Baseline:
    """A snapshot of the process, restored after each case. Objects are saved by reference before any case runs.

    Raises:
        RuntimeError: the current directory, which is emptied after each case, is not empty and so not a candidate's.
    """

    def __init__(self, cap: OutputCap) -> None:
        self._cap = cap
        self._home = os.getcwd()
        if os.listdir(self._home):
            raise RuntimeError(f"{self._home} holds files: a candidate's own folder is empty when it begins")
        self._imports = Imports(self._home)
        self._attributes = [Attributes(module.__name__, module) for module in _WATCHED]
        lists = (sys.path, sys.argv, sys.path_hooks, gc.callbacks, warnings.filters)
        self._lists = [(items, list(items)) for items in lists]
        self._environment = dict(os.environ)
        self._handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]
        self._digits = sys.get_int_max_str_digits()
        self._thresholds, self._switch_s = gc.get_threshold(), sys.getswitchinterval()
        self._stack = threading.stack_size()
        threading.stack_size(self._stack)  # reading sets it to the default
        self._locale = locale.setlocale(locale.LC_ALL)
        self._decimal = decimal.DefaultContext.copy()

    def restore(self) -> None:
        """Restore the process. An exception that the candidate planted ends its cases."""
        for attributes in self._attributes:
            attributes.put_back()
        atexit._clear()
        self._imports.restore()
        for items, saved in self._lists:
            if items != saved:
                items[:] = saved
        if os.environ._data != self._environment and dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
            time.tzset()
        self._restore_interpreter()
        if not (is_open(sys.stdout) and is_open(sys.stderr)):
            self._cap.open()
        os.chdir(self._home)
        os.umask(_UMASK)
        for name in os.listdir("."):
            _remove(name)

    def _restore_interpreter(self) -> None:
        random.seed(_SEED)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(_RECURSION)
        sys.set_int_max_str_digits(self._digits)
        sys.setswitchinterval(self._switch_s)
        gc.enable()
        gc.set_threshold(*self._thresholds)
        threading.stack_size(self._stack)
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)
        # New decimal contexts are copies of this one.
        context, saved = decimal.DefaultContext, self._decimal
        for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp"):
            setattr(context, name, getattr(saved, name))
        context.traps, context.flags = dict(saved.traps), dict(saved.flags)
        warnings.onceregistry.clear()
        warnings._filters_mutated()
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in self._handlers:
            if signal.getsignal(number) != handler:
                signal.signal(number, handler)


def _remove(path: str) -> None:
    """Remove a file or a folder, whatever its modes."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for name in os.listdir(path):
        _remove(os.path.join(path, name))
    os.rmdir(path)


_OWN = ("__main__", "candidate")
_RANDOM = "numpy.random"


class Attributes:
    """A snapshot of a module's attributes."""

    def __init__(self, name: str, module: types.ModuleType):
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
        self._kept: dict[str, types.ModuleType] = {}
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
        # State that is not in attributes of modules.
        weakref.finalize._shutdown = weakref.finalize._registered_with_atexit = False
        if "logging" in self._kept:
            _reset_logging(self._kept["logging"])
        if "asyncio" in self._kept:
            self._kept["asyncio"]._set_running_loop(None)
        if _RANDOM in self._kept:
            self._kept[_RANDOM].seed(_SEED)

    def _note(self, spec: Any, module: types.ModuleType) -> None:
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

    def fit(spec: Any, module: types.ModuleType) -> None:
        if spec.name == _RANDOM and hasattr(module, "seed"):
            module.seed(_SEED)
        elif spec.name == "_multiprocessing":
            module.SemLock = SemLock
        elif spec.name == "multiprocessing.heap":
            module.Arena._dir_candidates = []  # /dev/shm does not exist: the temporary folder is used

    _report_imports(fit)


def _report_imports(note: Callable[[Any, types.ModuleType], None]) -> None:
    """Calls `note` with the specification of each module loaded from now on, and the module."""
    load = _bootstrap._load_unlocked

    def load_and_note(spec: Any) -> types.ModuleType:
        module = load(spec)
        note(spec, module)
        return module

    _bootstrap._load_unlocked = load_and_note


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
    `multiprocessing` use this one class, and it requests shared memory from the kernel. It is replaced when a candidate
    imports that module, so that other candidates do not pay for it.
    """

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool):
        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, 0
        self._changed = threading.Condition(threading.Lock())
        self._value, self._taken, self._owner = value, 0, 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Acquire it; False: not within `timeout` seconds, or not at once if it must not block."""
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
