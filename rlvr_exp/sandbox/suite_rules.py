"""What the solution may not do while a suite runs: audit events and attributes, each with the rule that it breaks.

Pure tables and small tests of an event's arguments; `suite_guard` finds out who asked. A rule here is asked first
whether the arguments matter at all, so that ordinary events cost little. Standard library only.
"""

import os
import re
from collections.abc import Callable
from typing import Any

FRAME_WALK, GC_WALK, READS_TESTS = "frame-walk", "gc-walk", "reads-tests"
TRACING, AUDIT_HOOK, FORGED_CODE, NATIVE_CODE = ("tracing", "audit-hook", "forged-code", "native-code")
PATCHED, REPLACED, PLANTS, READS_MEMORY = ("patched-module", "replaced-module", "plants-files", "reads-memory")

READERS = frozenset(
    "abc asyncio collections contextlib dataclasses enum functools hypothesis logging numpy pandas scipy sympy torch "
    "types typing typing_extensions warnings weakref attr attrs".split()
)
"""Libraries that look at a caller's frame for its module or line, and hand nothing of it on but such names."""
TRACERS = READERS | {"traceback", "concurrent", "threading", "_pydecimal"}
"""Libraries that print the traceback of an exception that their caller holds."""
MAKERS = frozenset(
    "types typing enum collections functools dataclasses torch numpy scipy jinja2 networkx sympy pydantic attr "
    "transformers".split()
)
"""Libraries that make functions out of code of their own."""
FAMILY = frozenset("_pytest pytest pluggy iniconfig unittest hypothesis".split())
"""Who runs the tests and what tests are written with: never the solution's to change."""
NATIVE = frozenset(
    "ctypes _ctypes cffi _cffi_backend _testcapi _testinternalcapi _testbuffer _testmultiphase _xxtestfuzz "
    "_xxsubinterpreters _xxinterpchannels _interpreters cython pyximport".split()
)
SIGNATURES = frozenset(("_signature_from_function", "_signature_is_functionlike", "_has_code_flag"))
"""Functions of `inspect` that read a function's parameters and flags, not what it says."""
FRAME_ATTRIBUTES = ("f_back", "f_locals", "f_globals", "f_builtins")
DEEP = frozenset(("f_back", "f_locals"))

_PLANTED = ("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini")
_PLANTED += ("setup.cfg", "sitecustomize.py", "usercustomize.py")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MACHINE_FACTS = re.compile(r"/proc/(cpuinfo|meminfo|stat|uptime|loadavg|version|filesystems|mounts|sys/.*)$")
_PROCESS = re.compile(r"(^|/)proc/+(self|thread-self|\d+)(/|$)")
"""Whatever the folder is that a path starts from."""
_basename, _dirname, _normal, _join = (os.path.basename, os.path.dirname, os.path.normpath, os.path.join)
_getcwd, _fsdecode = os.getcwd, os.fsdecode


class Files:
    """The run's own folder and what of the suite belongs there."""

    __slots__ = ("_folder", "_given", "_suite")

    def __init__(self, folder: str, suite: frozenset[str], given: frozenset[str]):
        self._folder, self._suite, self._given = folder, suite, given

    def opened(self, args: tuple[Any, ...]) -> str | None:
        """The rule that opening would break, were it the solution that opens."""
        path, _, flags = (*args, 0, 0, 0)[:3]
        if not isinstance(path, (str, bytes)):
            return None
        path = _fsdecode(path)
        name = _basename(path)
        if _PROCESS.search(path) or (full := self._full(path)).startswith("/proc/") and not _MACHINE_FACTS.match(full):
            return READS_MEMORY
        if path.startswith("/dev/") and name in ("mem", "kmem", "port"):
            return READS_MEMORY
        if name in self._suite and self._full(path) == _join(self._folder, name):
            return READS_TESTS
        if type(flags) is int and flags & _WRITES:
            return self._written(path, name)
        return None

    def moved(self, args: tuple[Any, ...]) -> str | None:
        """For a rename or a link: what would come to lie there."""
        if len(args) < 2 or not all(isinstance(path, (str, bytes)) for path in args[:2]):
            return None
        source, target = _fsdecode(args[0]), _fsdecode(args[1])
        if self._full(source).startswith("/proc"):
            return READS_MEMORY
        return self._written(target, _basename(target))

    def _written(self, path: str, name: str) -> str | None:
        full = self._full(path)
        if full in self._given:
            return PLANTS
        planted = name in _PLANTED or name.endswith(".pth") or is_test_file(name)
        return PLANTS if planted and _dirname(full) == self._folder else None

    def _full(self, path: str) -> str:
        full = _normal(_join(_getcwd(), path))
        return "/" + full.lstrip("/")


def is_test_file(name: str) -> bool:
    """By pytest's own defaults."""
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def imported(suite: frozenset[str]) -> Callable[[tuple[Any, ...]], str | None]:
    """The rule for an import: native code, and the suite's own modules by name."""
    modules = frozenset(name.removesuffix(".py") for name in suite)

    def rule(args: tuple[Any, ...]) -> str | None:
        name = args[0] if args and isinstance(args[0], str) else ""
        top = name.partition(".")[0]
        if top in NATIVE:
            return NATIVE_CODE
        return READS_TESTS if top in modules else None

    return rule


def always(rule: str) -> Callable[[tuple[Any, ...]], str | None]:
    """Every such event matters."""
    return lambda args: rule
