"""What the suite's process believes of the solution, and what it lets the solution ask.

Plain data is compared by the interpreter. An object of the solution compares by its own methods with objects of the
solution, and with anything else only where it is an instance of a class that the task is about: the reference gave an
object at the same place, or, without a reference, the suite itself made it from a class that its text uses as one.
Where the reference gave plain data everywhere, an object is a wrong answer. Standard library only.
"""

import types
import unittest.mock
from collections.abc import Iterable
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.mirrors import ARITHMETIC, COMPARING, SPECIAL, Mirror, MirrorType, state_of

PLAIN, OBJECT = 1, 2
_SITES, _SITE = 4000, 200
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_OF_FUNCTIONS = frozenset(
    "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__ __signature__ __code__"
    " __dict__ __wrapped__ __type_params__".split()
)
_OF_CODE = frozenset("co_argcount co_posonlyargcount co_kwonlyargcount co_varnames co_flags co_name co_nlocals".split())
_OF_CLASSES = _OF_FUNCTIONS | frozenset("__dataclass_fields__ __match_args__ __subclasses__ __slots__ __init__".split())
_OF_MOCKS = frozenset((*dir(unittest.mock.MagicMock()), "method_calls", "mock_calls"))
_OF_RECORDS = frozenset(("_fields", "_attributes", "_asdict", "_replace"))
_PREDICATES = frozenset("startswith endswith issubset issuperset isdisjoint equals all any".split())
"""What a plain result would be asked about an expected value, with no more than yes or no for an answer."""


class Wrong(AssertionError):
    """An object where the reference gives plain data."""


class Rules:
    """Of one run.

    Args:
        classes: names that the suite's text uses as classes.
        sites: what the reference gave where, from `seen`; None without a reference.
        recording: this is the reference's own run: everything is believed and noted.
        own_modules: modules of the suite.
    """

    def __init__(
        self,
        classes: Iterable[str],
        sites: dict[str, int] | None,
        recording: bool,
        own_modules: frozenset[str],
    ):
        self._classes, self._sites, self._recording = frozenset(classes), sites, recording
        self._own_modules = own_modules
        self.seen: dict[str, int] = {}
        self.wrong = ""
        self.own = 0
        """Comparisons that the solution's own methods decided."""

    # Belief

    def site(self, target: Any, suffix: str, args: tuple[Any, ...] = ()) -> tuple[str, bool]:
        """A name for the place where a result comes from, and whether an object there is one that the task is about."""
        state, kind = state_of(target), type(target)
        if kind is MirrorType or state is None:
            label = target.__name__ if isinstance(target, type) else kind.__name__
        else:
            label = state.site
        site = f"{label}{suffix}"[-_SITE:].removeprefix(".")
        if self._sites is not None:
            return site, bool(self._sites.get(site, 0) & OBJECT)
        if kind is MirrorType:
            return site, target.__name__ in self._classes or self._derived(target)
        operands = [target, *args] if suffix[1:] in SPECIAL else []
        return site, any(self._is_about(operand) for operand in operands)

    def believed(self, site: str, value: Any) -> Any:
        """The value itself. Raises Wrong."""
        if self._recording:
            if len(self.seen) < _SITES:
                self.seen[site] = self.seen.get(site, 0) | (OBJECT if holds_object(value) else PLAIN)
        elif self._sites is not None and self._sites.get(site) == PLAIN and holds_object(value):
            self.wrong = self.wrong or f"{site} gave an object where the reference gives plain data"
            raise Wrong(self.wrong)
        return value

    def awaited(self, target: Any, value: Any) -> Any:
        """The same for what an awaitable came to."""
        return self.believed(self.site(target, ".await")[0], value)

    def refused(self, target: Any, name: str, args: tuple[Any, ...]) -> list[Any] | None:
        """[what comes instead] where a special method of the solution's is not asked."""
        if self._recording or (name not in COMPARING and name not in ARITHMETIC):
            self.own += name in COMPARING and type(type(target)) is MirrorType
            return None
        if self._is_about(target) or state_of(args[0]) is not None:
            self.own += name in COMPARING
            return None
        if name == "__contains__":
            return [any(item is args[0] or item == args[0] for item in target)]
        return [NotImplemented]

    def mirrors(self, kind: type) -> bool:
        """Whether an instance with plain content is more than that content."""
        if self._recording or self._sites is not None or kind.__name__ in self._classes or self._derived(kind):
            return True
        own = {name for base in type.mro(kind) if issubclass(type(base), MirrorType) for name in vars(base)}
        return issubclass(kind, tuple) and own.isdisjoint((*COMPARING, *ARITHMETIC, "__hash__", "__len__", "__iter__"))

    def _is_about(self, value: Any) -> bool:
        state = state_of(value)
        return state is not None and type(value) is not MirrorType and state.made

    def _derived(self, kind: type) -> bool:
        return any(base.__name__ in self._classes for base in type.mro(kind))

    # What the solution may ask

    def allow(self, what: str, target: Any, name: Any) -> None:
        """Raises AttributeError."""
        if what == "special":
            allowed = name in SPECIAL
        elif what in ("get", "method", "set", "delete"):
            allowed = type(name) is str and self._reaches(what, target, name)
        else:
            allowed = what != "dir" or not isinstance(target, _FUNCTIONS)
        if not allowed:
            raise AttributeError(f"{type(target).__name__!r} object has no attribute {name!r}")

    def _reaches(self, what: str, target: Any, name: str) -> bool:
        dunder = name.startswith("__") and name.endswith("__")
        if isinstance(target, types.CodeType):
            return what == "get" and name in _OF_CODE
        if isinstance(target, _FUNCTIONS):
            return not dunder if what != "get" else name in _OF_FUNCTIONS or name in vars(target)
        if isinstance(target, _RUNNING):
            return name in ("send", "throw", "close", "asend", "athrow", "aclose")
        if isinstance(target, unittest.mock.NonCallableMock):
            return name not in _OF_MOCKS and not dunder
        if isinstance(target, type):
            return name in _OF_CLASSES if dunder else target.__module__ in self._own_modules
        if type(target).__module__ in self._own_modules:
            return not dunder or name in ("__dict__", "__doc__")
        return not name.startswith("_") or name in _OF_RECORDS


class Trusting:
    """The solution's process believes whatever the suite sends, and answers everything."""

    own = 0

    def site(self, target: Any, suffix: str, args: tuple[Any, ...] = ()) -> tuple[str, bool]:
        return "", False

    def believed(self, site: str, value: Any) -> Any:
        return value

    def awaited(self, target: Any, value: Any) -> Any:
        return value

    def refused(self, target: Any, name: str, args: tuple[Any, ...]) -> None:
        return None

    def mirrors(self, kind: type) -> bool:
        return True

    def allow(self, what: str, target: Any, name: Any) -> None:
        """Anything."""


def holds_object(value: Any, depth: int = 0) -> bool:
    """Whether something in it is neither plain data nor a class or exception."""
    kind = type(value)
    if issubclass(kind, Mirror):
        return not issubclass(kind, BaseException)
    if depth > 20:
        return False
    if issubclass(kind, dict):
        return any(holds_object(part, depth + 1) for pair in value.items() for part in pair)
    if issubclass(kind, (list, tuple, set, frozenset)):
        return any(holds_object(part, depth + 1) for part in value)
    return False


PREDICATES = _PREDICATES
