"""Fresh state for each case of a candidate: its module, and what the case before it left in the interpreter.

Owns the candidate's module (`candidate` for functions, `__main__` for programs, each with builtins of its own) and
putting the process back between cases: entries of sys.modules, attributes of the modules in `_WATCHED` and of sys,
sys.path and its like, the environment, random's state, warnings, signal handlers and timers, exit handlers, tracing,
recursion and digit limits, the decimal context (a context of its own per case), the current directory and its files.

Not put back: threads that go on, locale and time zone, the attributes of other modules of the standard library, and the
content of objects that such modules share. That a hostile candidate carries something from case to case is no harm: all
that its process can send are values, which are held against expected values that it does not have.
Standard library only.
"""

import atexit
import builtins
import contextvars
import gc
import importlib
import importlib.machinery
import linecache
import os
import random
import signal
import sys
import tempfile
import types
import warnings
from _sitebuiltins import Quitter, _Helper
from collections.abc import Callable
from typing import Any

from rlvr_exp.sandbox.reporter import SOURCE

_WATCHED = [
    importlib.import_module(name)
    for name in "bisect cmath collections copy decimal fractions functools heapq io itertools json math operator os"
    " posixpath random re statistics string struct sys textwrap time".split()
]
"""Loaded once here, free in every fork; and put back where a case changes their attributes."""
for _name in "array dataclasses datetime contextlib enum abc threading typing".split():
    importlib.import_module(_name)

_BUILTINS = dict(vars(builtins)) | {"exit": Quitter("exit", "Ctrl-D"), "quit": Quitter("quit", "Ctrl-D")}
_BUILTINS["help"] = _Helper()
"""The workers start without `site`, which would bring these three."""
_SIGNALS = [signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP]
_SIGNALS += [signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU]
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_RECURSION = 1000 + 32
"""Python's own limit, and the frames below a candidate."""
_SEED, _UMASK = 0, 0o077


def begin(source: str) -> None:
    """What holds for all cases of a candidate."""
    sys.argv[:] = [SOURCE]
    sys.setrecursionlimit(_RECURSION)
    random.seed(_SEED)  # a fork seeds itself from the clock: unseeded candidates would be judged by luck
    tempfile.tempdir = None  # what the worker found for itself is closed to candidates
    linecache.cache[SOURCE] = (len(source), None, source.splitlines(keepends=True), SOURCE)  # inspect, tracebacks


def new_module(name: str) -> types.ModuleType:
    """An empty module, known as `name` and as `__main__`. A candidate that patches builtins patches its own."""
    own = types.ModuleType("builtins")
    own.__dict__.update(_BUILTINS)
    module = types.ModuleType(name)
    module.__dict__.update(__builtins__=own, __file__=SOURCE)
    if name != "__main__":
        module.__dict__.update(__package__="", __spec__=importlib.machinery.ModuleSpec(name, None, origin=SOURCE))
    sys.modules.update({"builtins": own, "__main__": module, name: module})
    return module


def in_own_context(call: Callable[..., Any], *args: Any) -> Any:
    """Context variables, among them the decimal context, begin anew."""
    return contextvars.Context().run(call, *args)


def is_open(stream: Any) -> bool:
    """Neither closed nor detached from its buffer."""
    try:
        return not stream.closed
    except ValueError:
        return False


class Baseline:
    """The process as it is now, to be put back after each case. Objects are taken by reference before any case runs."""

    def __init__(self) -> None:
        self._home = os.getcwd()
        self._modules = dict(sys.modules)
        self._attributes = [(vars(module), dict(vars(module))) for module in _WATCHED]
        self._lists = [(items, list(items)) for items in (sys.path, sys.argv, sys.meta_path, sys.path_hooks)]
        self._lists.append((warnings.filters, list(warnings.filters)))
        self._environment = dict(os.environ)
        self._handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]
        self._digits = sys.get_int_max_str_digits()

    def restore(self) -> None:
        """Raises what a candidate planted there to be raised; it has no further case then."""
        for attributes, saved in self._attributes:
            if attributes != saved:
                _put_back(attributes, saved)
        self._restore_modules()
        for items, saved in self._lists:
            if items != saved:
                items[:] = saved
        if os.environ._data != self._environment and dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        self._restore_interpreter()
        self._restore_streams()
        self._empty_home()

    def _restore_modules(self) -> None:
        """Modules of the standard library that were imported meanwhile stay: they cost much and hold little."""
        for name, module in list(sys.modules.items()):
            if name not in self._modules and not _is_librarys(name, module, self._home):
                del sys.modules[name]
        sys.modules.update(self._modules)

    def _restore_interpreter(self) -> None:
        random.seed(_SEED)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(_RECURSION)
        sys.set_int_max_str_digits(self._digits)
        gc.enable()
        atexit._clear()
        tempfile.tempdir = None
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in self._handlers:
            if signal.getsignal(number) != handler:
                signal.signal(number, handler)

    def _restore_streams(self) -> None:
        for name, fd in (("stdout", 1), ("stderr", 2)):
            if not is_open(getattr(sys, name)):
                setattr(sys, name, open(fd, "w", encoding="utf-8", errors="surrogateescape", closefd=False))

    def _empty_home(self) -> None:
        os.chdir(self._home)
        os.umask(_UMASK)
        for name in os.listdir("."):
            _remove(name)


def _put_back(attributes: dict[str, Any], saved: dict[str, Any]) -> None:
    for name in attributes.keys() - saved.keys():
        del attributes[name]
    attributes.update(saved)


def _remove(path: str) -> None:
    """Whatever its modes are."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for name in os.listdir(path):
        _remove(os.path.join(path, name))
    os.rmdir(path)


def _is_librarys(name: str, module: Any, home: str) -> bool:
    """Whether a module was imported by its own name, and from no file that the candidate wrote."""
    spec = getattr(module, "__spec__", None)
    origin = getattr(spec, "origin", None)
    if type(origin) is not str or spec.name != name:
        return False
    return origin in ("built-in", "frozen") or (origin.startswith("/") and not origin.startswith(home))
