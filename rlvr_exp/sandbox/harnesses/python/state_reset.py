"""Fresh state for each case of a candidate: its module, and the interpreter's state after the previous case.

Owns the candidate's module (`candidate` for functions, `__main__` for programs, each with its own builtins) and
restoring the process between cases: entries of sys.modules, attributes of the standard library's modules (those in
`_WATCHED` here, those that a case imports in imports.py) and of sys, sys.path and the like, the environment, locale and
time zone, random's state, warnings, signal handlers, masks and timers, exit handlers, tracing, recursion and digit
limits, the collector's thresholds, the decimal contexts, the current directory and its files.

Not restored: threads that keep running, the state of packages, and the content of objects that modules of the standard
library share (classes that were patched, registries). State that a hostile candidate carries from case to case is no
harm: its process can only send values, which are compared with expected values that it does not have.
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
from _sitebuiltins import Quitter, _Helper
from collections.abc import Callable
from functools import cache
from typing import Any

from rlvr_exp.sandbox.harnesses.python.imports import Attributes, Imports, fit_imports
from rlvr_exp.sandbox.harnesses.python.reporter import SOURCE, OutputCap

_WATCHED = [
    importlib.import_module(name)
    for name in "bisect collections copy datetime decimal fractions functools heapq io itertools json math"
    " operator os posixpath random re string struct sys textwrap threading time warnings".split()
]
"""Loaded once here, at no cost in forks; restored where a case changes their attributes."""
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
    """Set up what holds for all cases of a candidate."""
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
        """Restore the process. Raises what a candidate planted to be raised; then it has no further case."""
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
        self._restore_streams()
        self._empty_home()

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
        self._restore_decimal()
        warnings.onceregistry.clear()
        warnings._filters_mutated()
        self._restore_signals()

    def _restore_decimal(self) -> None:
        """New contexts are copies of this one."""
        context, saved = decimal.DefaultContext, self._decimal
        for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp"):
            setattr(context, name, getattr(saved, name))
        context.traps, context.flags = dict(saved.traps), dict(saved.flags)

    def _restore_signals(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in self._handlers:
            if signal.getsignal(number) != handler:
                signal.signal(number, handler)

    def _restore_streams(self) -> None:
        if not (is_open(sys.stdout) and is_open(sys.stderr)):
            self._cap.open()

    def _empty_home(self) -> None:
        os.chdir(self._home)
        os.umask(_UMASK)
        for name in os.listdir("."):
            _remove(name)


def _remove(path: str) -> None:
    """Remove a file or a folder, whatever its modes."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for name in os.listdir(path):
        _remove(os.path.join(path, name))
    os.rmdir(path)
