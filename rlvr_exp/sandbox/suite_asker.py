"""Who asks: which code stands behind a call, seen through the libraries that it goes through.

Code belongs to the suite, to the grader, to a library, or to somebody else; somebody else is the solution, whatever
name or file it gives itself. Belonging is by identity, and for a library loaded later by comparing with its file: a
code object that claims to be a library's and is not is the solution's. Standard library only.
"""

import gc
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType

from rlvr_exp.sandbox import suite_native as native


@dataclass(frozen=True, slots=True)
class Asker:
    """`hostile`: the nearest code that is no library's is the solution's. `through`: the top modules of the libraries
    between, nearest first. `nearest`: the code that asked itself; None: the guard."""

    hostile: bool
    through: tuple[str, ...]
    nearest: CodeType | None


HOOK = "hook"
"""The function that the interpreter tells of events."""
_GUARD, _READER, _TRUSTED = "<guard>", "<reader>", "<suite>"
_OURS = (_GUARD, _READER, _TRUSTED)
_READERS = ("rlvr_exp.sandbox.suite_asker", "rlvr_exp.sandbox.suite_native")


class Registry:
    """Every code object known, by identity. Filled in the zygote with what is loaded there."""

    __slots__ = ("_files", "_known", "_refused", "_roots")

    def __init__(self, guards: Iterable[str]):
        self._roots: tuple[str, ...] = ()
        self._known: dict[int, tuple[CodeType, str]] = {}
        self._refused: dict[int, CodeType] = {}
        self._files: dict[str, frozenset[CodeType]] = {}
        self._learn(frozenset(guards))

    def _learn(self, guards: frozenset[str]) -> None:
        """Take in all functions that live now: those of `guards` modules, the grader's others, the libraries'."""
        for function in gc.get_objects():
            if type(function) is not FunctionType:
                continue
            module = str(function.__globals__.get("__name__"))
            top = _TRUSTED if module.startswith("rlvr_exp.") else module.partition(".")[0]
            top = _GUARD if module in guards else _READER if module in _READERS else top
            self._known.update((id(code), (code, top)) for code in nested(function.__code__))

    def settle(self) -> None:
        """In the fork: where libraries lie now. Whoever calls knows that nobody else has touched the path yet."""
        roots = {entry.rstrip("/") + "/" for entry in sys.path if entry.startswith("/")}
        self._roots = tuple(sorted(roots, key=len, reverse=True))

    def trust(self, code: CodeType) -> None:
        """The suite's code, all that is nested in it included."""
        self._known.update((id(part), (part, _TRUSTED)) for part in nested(code))

    def trusts(self, code: CodeType) -> bool:
        """The suite's or the grader's own."""
        return self._top_of(code) in _OURS

    def library_of(self, code: CodeType) -> str | None:
        """The top module of a library's code; None for anybody else's."""
        top = self._top_of(code)
        return None if top in _OURS else top

    def asker(self) -> Asker:
        """Who called the guard."""
        known, through, nearest, at_hook = self._known, [], None, False
        for code in native.callers():
            top = known[id(code)][1] if id(code) in known else self._top_of(code)
            if top in (_GUARD, _READER):
                if at_hook and top == _READER:  # a library's file is being read to know it
                    return Asker(False, (), None)
                at_hook = top == _GUARD and code.co_name == HOOK
                continue
            at_hook = False
            nearest = nearest or code
            if top is None or top == _TRUSTED:
                return Asker(top is None, tuple(through), nearest)
            through.append(top)
        return Asker(True, tuple(through), nearest)  # a thread that begins in a library: nobody vouches for it

    def _top_of(self, code: CodeType) -> str | None:
        known = self._known.get(id(code))
        if known is not None:
            return known[1]
        if id(code) in self._refused or not code.co_filename.startswith(self._roots):
            return None
        self._refused[id(code)] = code  # while its file is read, and for good where it is not its
        if not self._is_in_its_file(code):
            return None
        del self._refused[id(code)]
        self._known[id(code)] = (code, self._top(code.co_filename))
        return self._known[id(code)][1]

    def _is_in_its_file(self, code: CodeType) -> bool:
        if code.co_filename not in self._files:
            self._files[code.co_filename] = _codes_of(code.co_filename)
        return code in self._files[code.co_filename]

    def _top(self, filename: str) -> str:
        root = max((root for root in self._roots if filename.startswith(root)), key=len)
        return filename[len(root) :].partition("/")[0].removesuffix(".py")


def nested(code: CodeType) -> list[CodeType]:
    """A code object and all inside it."""
    found = [code]
    for part in found:
        found += [constant for constant in part.co_consts if type(constant) is CodeType]
    return found


def _codes_of(path: str) -> frozenset[CodeType]:
    """All code of a library's file, equal to what was loaded from it; from its compiled form where there is one."""
    try:
        with _open(_compiled_path(path), "rb") as file:
            data = file.read()
        if data[:4] == _MAGIC:
            return frozenset(nested(native.unmarshalled(data[16:])))
    except (OSError, NotImplementedError):
        pass  # not compiled: read it
    try:
        with _open(path, "rb") as file:
            return frozenset(nested(compile(file.read(), path, "exec", dont_inherit=True)))
    except (OSError, SyntaxError, ValueError):
        return frozenset()


_open, _compiled_path, _MAGIC = (open, importlib.util.cache_from_source, importlib.util.MAGIC_NUMBER)
