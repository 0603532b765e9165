"""Rules of the suite's process: the answers of the solution that it accepts, and the requests that it serves.

Plain data is compared by the interpreter. An object of the solution compares by its own methods with objects of the
solution, and with anything else only if it is an instance of a class that the task is about: the reference gave an
object at the same place, or, without a reference, the suite itself made it from a class that its text uses as one.
If the reference gave plain data everywhere, an object is a wrong answer. Standard library only.
"""

import enum
import os
import types
import unittest.mock
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, NoReturn

from rlvr_exp.sandbox.harnesses.pytest import values
from rlvr_exp.sandbox.harnesses.pytest.examination import Examination
from rlvr_exp.sandbox.harnesses.pytest.mirrors import (
    ARITHMETIC,
    COMPARING,
    IN_PLACE,
    ROOT,
    SPECIAL,
    Bound,
    Place,
    is_class,
    state_of,
)
from rlvr_exp.sandbox.harnesses.pytest.moments import Moment, Moments, Snapshot
from rlvr_exp.sandbox.harnesses.pytest.texts import key_of
from rlvr_exp.sandbox.harnesses.pytest.values import MAX_DEPTH
from rlvr_exp.sandbox.harnesses.pytest.values import PLAIN as PLAIN_TYPES

PLAIN, OBJECT = 1, 2
_SERVED = frozenset(
    "call method get set delete special dir isinstance issubclass describe hints derive spawn cancel settle".split()
)
"""Requests that the suite's process serves at all."""
_SITES, _SITE = 4000, 200
_DECIDING = frozenset((*COMPARING, *ARITHMETIC, *IN_PLACE, "__hash__"))
"""Special methods that decide how an object compares."""
_DESCRIBING = frozenset(("__get__", "__set__", "__delete__", "__set_name__"))
_COUNTING = frozenset((*ARITHMETIC, "__neg__", "__pos__", "__abs__", "__invert__", "__round__"))
"""Special methods whose result the task is about if it is about their operands."""
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_OF_FUNCTIONS = frozenset(
    "__name__ __qualname__ __doc__ __module__ __annotations__ __defaults__ __kwdefaults__ __signature__ __code__"
    " __dict__ __wrapped__ __type_params__".split()
)
_OF_CODE = frozenset("co_argcount co_posonlyargcount co_kwonlyargcount co_varnames co_flags co_name co_nlocals".split())
_OF_CLASSES = _OF_FUNCTIONS | frozenset(
    "__dataclass_fields__ __dataclass_params__ __match_args__ __slots__ __init__".split()
)
_OF_MOCKS = frozenset((*dir(unittest.mock.MagicMock()), "method_calls", "mock_calls"))
_RECORDS = ("logging.LogRecord", "argparse.Namespace")
_OF_RECORDS = frozenset(("_fields", "_attributes", "_asdict", "_replace"))
_PREDICATES = frozenset("startswith endswith issubset issuperset isdisjoint equals all any".split())
"""Methods that compare a plain result with an expected value and answer yes or no."""
_OF_PLAIN = {"equals"} | {name for kind in PLAIN_TYPES for name in dir(kind) if not name.startswith("__")}


_NEVER = Moment()
_GAVE, _CATCHES, _CHECKS, _LEFT_OUT = "an object", "failures caught", "own check", "not run to its end"
_ENDS = "to its end: "
"""Before the name of a function that asserts: the reference's run came to its end."""
CHANGES = "~"
"""Behind a kind of state, or of an act on the suite's process: the reference did so."""
WRAPS = "wraps a failure"
"""The solution raises another exception when an assertion of the suite fails in it."""
_KINDS = ("equality", "membership", "order", "arithmetic")
"""Of the methods that see plain data, behind a place: the reference's own decided there."""
CATCHES = "^"
"""Behind a place: the reference gave a class there that catches failures of the suite."""
_CAUGHT = frozenset(AssertionError.__mro__[:-1])


def catches_failures(value: Any) -> bool:
    """Whether `except` with this class, or these classes, would catch a failed assertion: a solution that gives its own
    exceptions such names would fail no test."""
    if isinstance(value, (tuple, list)):
        return any(map(catches_failures, value))
    return isinstance(value, type) and (value in _CAUGHT or value.__module__ == "_pytest.outcomes")


class Wrong(AssertionError):
    """An object, although the reference gives plain data."""


@dataclass
class _Ends:
    """How often a function came to its end in a test. `handed`: how often the solution got it."""

    count: int = 0
    as_given: int = 0
    handed: int = 0
    asynchronous: bool = False

    def wanted(self, drawn: bool) -> list[int]:
        """Least count and least count with the arguments given. A solution may call what it got less often, such as a key."""
        most = 1 if drawn else self.count
        return [most if self.asynchronous else max(1, min(most, self.handed)), min(self.as_given, most)]


class Rules:
    """The rules of one run.

    Args:
        classes: names of classes whose instances the suite's text compares with plain data.
        profile: from `profile`, of the reference's run; None without a reference.
        recording: this is the reference's own run: everything is accepted and recorded.
        own_modules: modules of the suite.
        strict: effects that the reference does not have are not applied.
    """

    def __init__(
        self,
        classes: Iterable[str],
        profile: dict[str, Any] | None,
        recording: bool,
        own_modules: frozenset[str],
        strict: bool = True,
    ):
        self._classes, self.recording, self.strict = frozenset(classes), recording, strict
        self._sites: dict[str, int] | None = None if profile is None else profile["sites"]
        self._used: set[str] = set()
        """Places of objects that the suite uses as such."""
        self.moments = Moments(None if profile is None else profile["moments"], recording)
        self.bound = self.moments.bound
        """Whether the solution is bound to what the reference did."""
        self._own_modules = own_modules
        self._known_names: list[str] | None = None if profile is None else profile["shown"]
        self._shown: list[str] = []
        self.texts: dict[str, str] | None = None if profile is None else profile["texts"]
        """Of the reference's objects, those with examples."""
        self._about: set[type] = set()
        self._failed: list[AssertionError] = []
        self.asserting: Set[tuple[str, str]] = frozenset()
        """Functions of the suite that assert: path and key."""
        self._ends: dict[tuple[str, str], _Ends] = defaultdict(_Ends)
        self.managed: dict[str, list[tuple[int, int, list[int]]]] = {}
        """From `compiled`."""
        self.made: set[type] = set()
        """Classes that the solution derived from the suite's."""
        self.handed: set[type] = set()
        """Classes of the suite that crossed as such."""
        self.seen: dict[str, int] = {}
        self.wrong = ""
        self._undone: dict[int, Snapshot] = {}
        self.effects: dict[str, None] = {}
        """Effects that the reference does not have, in words."""
        self.handed_out = False
        """Whether the solution handed out a class that catches the suite's failures."""
        self.own = 0
        """Comparisons that the solution's own methods decided."""
        self.examination = Examination(self.moments, self.refuse)

    def profile(self) -> dict[str, Any]:
        """What the reference did in this run."""
        moments = self.moments.recorded()
        examined = self.examination.examined
        return {"sites": self.seen, "moments": moments, "shown": self._shown, "examined": examined}

    def refuse(self, why: str) -> NoReturn:
        """Raises Wrong. The solution fails even if the suite catches it."""
        self.wrong = self.wrong or why
        raise Wrong(self.wrong)

    def shown(self, names: list[str]) -> list[str]:
        """Those names of the solution that a star import brings: the ones that the reference defines, too."""
        self._shown = names if self._known_names is None else [name for name in names if name in self._known_names]
        return self._shown

    # Acceptance

    def place(self, target: Any, suffix: str, args: tuple[Any, ...] = ()) -> Place:
        """The place of the result of an operation on an object."""
        state = state_of(target) or state_of(type(target))
        labels = (state.place.sites if state is not None else ()) or ("?",)
        sites = tuple(f"{label}{suffix}"[-_SITE:].removeprefix(".") for label in labels)
        if self.recording:
            return Place(sites)
        giver = state.number if state is not None and suffix else 0
        if self._sites is None:
            return Place(sites, self._is_about_by_text(target, suffix, args), giver=giver)
        plain = tuple(site for site in sites if self._sites.get(site) == PLAIN)
        known = [site for site in sites if self._sites.get(site, 0) & OBJECT]
        return Place(plain or sites, bool(known) and not plain, bool(plain), bool(plain) and not known, giver)

    def place_of_fault(self, place: Place) -> Place:
        """The place of an exception's content."""
        return Place(tuple(f"{site}!" for site in place.sites))

    def _is_about_by_text(self, target: Any, suffix: str, args: tuple[Any, ...]) -> bool:
        if is_class(target):
            return target in self._about
        if suffix == "()" and not is_class(type(target)):  # a method of a class, like Point.origin
            return self._is_about(target)
        return suffix[1:] in _COUNTING and any(self._is_about(operand) for operand in (target, *args))

    def named(self, value: Any, name: str) -> None:
        """The suite got a class under this name."""
        if is_class(value) and name in self._classes:
            self._about.add(value)

    def derived(self, kind: Any) -> None:
        """The suite derived its own class."""
        if kind.__name__ in self._classes or any(base in self._about for base in type.mro(kind)):
            self._about.add(kind)

    def believed(self, place: Place, value: Any, moment: Moment = Moment()) -> Any:  # noqa: B008  a constant
        """The value itself. Raises Wrong."""
        state = state_of(value) if isinstance(value, type) else None
        if state is not None:
            state.met(place)
        swallows = catches_failures(value)
        if self.recording:
            if len(self.seen) < _SITES:
                found = OBJECT if holds_object(value) else PLAIN
                self.seen.update((site, self.seen.get(site, 0) | found) for site in place.sites)
                if found == OBJECT:
                    self.moments.record(moment, _GAVE)
                self.seen.update((site + CATCHES, 1) for site in place.sites if swallows)
                if _is_solutions(value) and values.base_of(type(value)) is not None:
                    # It compares in this process, by its content: no method of its own is seen.
                    kinds = (f"{site} {kind}{CHANGES}" for site in place.sites for kind in _KINDS)
                    self.seen.update(dict.fromkeys(kinds, 1))
        elif swallows and not any(site + CATCHES in (self._sites or ()) for site in place.sites):
            self.refuse(f"{(place.sites or ('?',))[0]} is a class that catches the suite's own failures")
        elif holds_object(value) and (place.refused or self._was_plain(place, moment)):
            self.refuse(f"{place.sites[0]} gave an object where the reference gives plain data")
        self.examination.keep(moment, value)
        return value

    def _was_plain(self, place: Place, moment: Moment) -> bool:
        """Whether the reference, which gave both there, gave plain data at this moment."""
        mixed = self.bound and any(self._sites.get(site) == PLAIN | OBJECT for site in place.sites)
        return mixed and self.moments.knows(moment) and not self.moments.of_reference(moment, _GAVE)

    def changes(self, kind: str) -> bool:
        """Whether the solution may do such a thing to the suite's process: if the reference did, or is not known."""
        if self.recording:
            self.seen[f"{kind}{CHANGES}"] = 1
        if self._sites is None:
            return True
        return self.recording or f"{kind}{CHANGES}" in self._sites

    def awaited(self, target: Any, value: Any) -> Any:
        """The same for the result of an awaitable."""
        return self.believed(self.place(target, ".await"), value)

    def refuses(self, target: Any, name: str, args: tuple[Any, ...]) -> bool:
        """Whether a special method of the solution is not called: it would see the expected value."""
        if name not in COMPARING and name not in ARITHMETIC and name not in IN_PLACE:
            return False
        state = state_of(target) if self.recording and len(self.seen) < _SITES else None
        if state is not None and not _is_solutions(args[0]):
            self.seen.update((f"{site} {_kind_of(name)}{CHANGES}", 1) for site in state.place.sites)
        if self.recording or (self._is_about(target) and self._decides(target, name)) or _is_solutions(args[0]):
            self.own += name in COMPARING and is_class(type(target))
            return False
        return True

    def _decides(self, target: Any, name: str) -> bool:
        """Whether an object's own methods of this kind decide about plain data: if the reference's did, or is not known."""
        keys = (f"{site} {_kind_of(name)}{CHANGES}" for site in state_of(target).place.sites)
        return self._sites is None or any(key in self._sites for key in keys)

    def ask(self, target: Any, name: str, args: tuple[Any, ...] = ()) -> None:
        """Raises AttributeError for methods of plain data on an object in its place: they would see the expected value. The suite
        uses an object as one if it reads an attribute from there that no plain data has."""
        if self.recording or not _is_solutions(target) or self._is_about(target):
            return
        sites = state_of(target).place.sites if state_of(target) is not None else ()
        if name not in _OF_PLAIN:
            self._used.update(sites)
            return
        sees = (args or name in _PREDICATES) and not (args and all(map(_is_solutions, args)))
        if sees and not self._used.intersection(sites) and not self._is_of_named_class(target):
            raise AttributeError(f"{name} of an object of the solution")

    def _is_of_named_class(self, target: Any) -> bool:
        """The solution's module, a class that the suite took from it by a class's name, or its instance or member."""
        state = state_of(target)
        if state is not None and state.place.sites == ROOT.sites:
            return True
        kind = target if isinstance(target, type) else type(target)
        sites = state_of(kind).place.sites if state_of(kind) is not None else ()
        if self._sites is not None:
            return any(self._sites.get(site, 0) & OBJECT and _is_class_name(site) for site in sites)
        labels = [site for site in sites if _is_class_name(site)]
        if state is None or kind is target:
            return bool(labels)
        return any(f"{label}()" in state.place.sites for label in labels)

    def _is_about(self, value: Any) -> bool:
        state = state_of(value)
        return state is not None and not is_class(value) and state.place.about

    # Effects on the suite's process

    def spot(self, what: str, target: Any, name: Any) -> str:
        """Where a request is about to be sent. Of a function, with its first name: a line may call several."""
        if self.examination.runs or not (self.bound or self.recording):
            return ""
        if (
            what == "call"
            and isinstance(target, (type, types.FunctionType))
            and (state := state_of(target)) is not None
        ):
            name = (*state.place.sites, "?")[0]
        return self.moments.spot(f"{what} {name}".strip() if type(name) is str else what)

    def moment(self, spot: str, arguments: Any, encode: Any) -> Moment:
        return self.moments.now(spot, arguments, encode)

    def has(self, moment: Moment, effect: str, value: Any = 1) -> Any:
        """What the reference had of an effect at this moment. None, and a note, if it had none."""
        if self.recording:
            self.moments.record(moment, effect, value)
            return value
        found = self.moments.of_reference(moment, effect)
        if found is None:
            self.effects.setdefault(effect if moment.spot in effect else f"{effect}, by {moment.spot}")
        return found

    def may(self, moment: Moment, effect: str) -> bool:
        """Whether an effect is applied here."""
        return not (self.recording or self.bound) or self.has(moment, effect) is not None or not self.strict

    def stays(self, moment: Moment, label: str, content: Any) -> bool:
        """Whether a container of that label keeps a new content, which the solution gave its own copy. Raises Wrong."""
        kind = OBJECT if holds_object(content) else PLAIN
        if not (self.recording or self.bound):
            return True
        found = self.has(moment, f"a change of {label}", kind)
        if found == PLAIN and kind == OBJECT:
            self.refuse(f"an object was put into {label}, where the reference puts plain data")
        return bool(found) or not self.strict

    def act(self, target: Any, does: Callable[[], Any], moment: Moment) -> Any:
        """The result of a request of the solution. If the reference leaves an object of the suite as it is, so does `settle`."""
        own = target if isinstance(target, (type, types.FunctionType)) else type(target)
        if not (self.recording or self.bound) or getattr(own, "__module__", "") not in self._own_modules:
            return does()
        before = Snapshot(target)
        try:
            return does()
        finally:
            if (changed := before.changed()) and not self._may_change(moment, target, own.__qualname__, changed):
                self._undone.setdefault(id(target), before)

    def settle(self) -> None:
        """At the end of a request, undo changes of the suite's objects. Before that the solution sees them, as it would see them
        in one process: what it computes from its own change is wrong."""
        undone, self._undone = self._undone, {}
        for before in undone.values():
            before.restore(before.changed())

    def _may_change(self, moment: Moment, target: Any, name: str, changed: list[str]) -> bool:
        """Of a class, each attribute by itself: they decide how its instances compare."""
        parts = (
            [f"a change of {name}.{part}" for part in changed] if isinstance(target, type) else [f"a change of {name}"]
        )
        had = [self.has(moment, part) for part in parts]
        return None not in had or not self.strict

    def derives(self, moment: Moment, parts: list[Any]) -> list[Any]:
        """The parts of a class of the solution that the suite's process gets, to which its base belongs: none of those that
        compare with plain data, except where the reference has them."""
        return [
            part for part in parts if part[0] not in _DECIDING or self._reference_has(moment, f"a class with {part[0]}")
        ]

    def _reference_has(self, moment: Moment, effect: str) -> bool:
        """Whether the reference had this effect at this moment; always in its own run, which records it."""
        if self.recording:
            self.moments.record(moment, effect)
        return self.recording or self.moments.of_reference(moment, effect) is not None

    # Failures

    def leaves(self, fault: BaseException) -> None:
        """An assertion of the suite failed while the solution called it."""
        if isinstance(fault, AssertionError) and state_of(fault) is None and not isinstance(fault, Wrong):
            self._failed.append(fault)

    def raised(self, fault: Any) -> None:
        """An exception came back from the solution."""
        below = (getattr(fault, "__cause__", None), getattr(fault, "__context__", None))
        wrapped = [failure for failure in self._failed if any(failure is part for part in below)]
        forgiven = [fault, *(wrapped if wrapped and self.changes(WRAPS) else ())]
        self._failed = [failure for failure in self._failed if not any(failure is one for one in forgiven)]

    def skips(self, trace: types.TracebackType | None) -> bool:
        """Whether the end of a `with` block there prevents an assertion of the block: if the reference's ended none, or if
        it is not known and an assertion is left."""
        if trace is None:
            return False
        blocks = self.managed.get(trace.tb_frame.f_code.co_filename, ())
        around = [block for block in blocks if block[0] <= trace.tb_lineno <= block[1]]
        if not around:
            return False
        first, _, asserted = max(around)
        if self.recording or self._sites is not None:
            return not self.changes(f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{first} ended")
        return any(line >= trace.tb_lineno for line in asserted)

    def swallowed(self) -> list[AssertionError]:
        """Assertions that failed since the last call, and that the solution swallowed."""
        failed, self._failed = self._failed, []
        return failed

    def caught(self, kind: Any, origin: str) -> Any:
        """A class that the suite catches, or these. Whether it catches the suite's own failures is decided by the suite's text,
        or by what the reference gave there; without both, the solution must not have handed out such a class. Raises
        Wrong."""
        if origin == "own" or not catches_failures(kind):
            return kind
        if self.recording or self.bound:
            allowed = self._reference_has(Moment(self.moments.spot("catch")), _CATCHES)
        else:
            allowed = origin != "bases" and not self.handed_out
        if not allowed:
            self.refuse("the solution chose a class that catches the suite's own failures")
        return kind

    def met(self, kind: type | None) -> None:
        """The solution handed out a library's class."""
        self.handed_out = self.handed_out or catches_failures(kind)

    def checks(self, what: str) -> bool:
        """Whether a class of the solution decides here by itself what its instances are: if one of the reference's did, or is not
        known."""
        return not (self.recording or self.bound) or self._reference_has(Moment(self.moments.spot(what)), _CHECKS)

    def hands(self, function: Any) -> None:
        """A function of the suite goes to the solution as an argument."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        key = (code.co_filename, key_of(code.co_name, code.co_firstlineno)) if code is not None else None
        if key in self.asserting:
            self._ends[self.moments.test, _name_of(*key)].handed += 1

    @property
    def handed_assertions(self) -> bool:
        """Whether the solution got a function that asserts."""
        return any(ends.handed for ends in self._ends.values())

    def ended(self, path: str, key: str, asynchronous: bool, as_given: bool) -> None:
        """A function of the suite that asserts came to its end, in a request of the solution, a thread or an event loop.

        Args:
            as_given: it had the arguments of the request that waits, as a function has that a decorator wraps.
        """
        ends = self._ends[self.moments.test, _name_of(path, key)]
        ends.count += 1
        ends.as_given += as_given
        ends.asynchronous = asynchronous

    def missed(self, test: str) -> str:
        """The test is over: a function that asserts, and that came to its end less often than in the reference's run."""
        moment = Moment(test)
        if self.recording:
            for (own, function), ends in self._ends.items():
                if own == test and ends.count:
                    self.moments.record(moment, _ENDS + function, ends.wanted(self.moments.drawn))
        elif self.bound:
            for effect in self.moments.effects_of_reference(moment, _ENDS):
                ends = self._ends[test, effect.removeprefix(_ENDS)]
                count, as_given = self.moments.of_reference(moment, effect)
                if ends.count < count or ends.as_given < as_given:
                    return f"assertions of {effect.removeprefix(_ENDS)} ran less often than in the reference's run"
        return ""

    def leaves_out(self, test: str) -> bool:
        """Whether the test's own code need not run to its end, as in the reference's run."""
        return self._reference_has(Moment(test), _LEFT_OUT)

    # Requests of the solution

    def allow(self, what: str, target: Any, name: Any) -> None:
        """Raises AttributeError."""
        if what not in _SERVED or (isinstance(target, type) and not self._is_own(target)):
            allowed = False
        elif type(target).__module__.partition(".")[0] in ("_pytest", "pytest"):
            allowed = False
        elif what == "special":
            described = name in _DESCRIBING
            own = type(target).__module__ in self._own_modules or isinstance(target, unittest.mock.PropertyMock)
            allowed = name in SPECIAL and (not described or own)
        elif what in ("get", "method", "set", "delete"):
            allowed = type(name) is str and self._reaches(what, target, name)
        else:
            allowed = what != "dir" or not isinstance(target, _FUNCTIONS)
        if not allowed:
            raise AttributeError(f"{type(target).__name__!r} object has no attribute {name!r}")

    def _is_own(self, kind: type) -> bool:
        return kind.__module__ in self._own_modules or kind in self.made

    def _defines(self, kind: type, name: str) -> bool:
        """Whether a class of the suite has a special name that the interpreter does not know."""
        own = (base for base in kind.__mro__ if base.__module__ in self._own_modules)
        return name not in SPECIAL and not hasattr(type, name) and any(name in vars(base) for base in own)

    def _reaches(self, what: str, target: Any, name: str) -> bool:
        dunder = name.startswith("__") and name.endswith("__")
        if isinstance(target, types.CodeType):
            return what == "get" and name in _OF_CODE
        if isinstance(target, _FUNCTIONS):
            return not dunder if what != "get" else name in _OF_FUNCTIONS or name in vars(target)
        if isinstance(target, _RUNNING):
            return name in ("send", "throw", "close", "asend", "athrow", "aclose")
        if isinstance(target, unittest.mock.NonCallableMock):
            return name not in _OF_MOCKS and not name.startswith("_")
        if isinstance(target, types.ModuleType):  # in `sys.modules` by the suite itself
            return what in ("get", "method") and name != "__builtins__" and (name in vars(target) or not dunder)
        if isinstance(target, type):
            changes = what in ("set", "delete")
            if changes:  # Which of them stay is decided by `act`.
                known = self.recording or self.bound or name in SPECIAL - _DECIDING - _DESCRIBING
                return target in self.handed and (not dunder or known)
            special = (name in SPECIAL and target in self.handed) or self._defines(target, name)
            return name in _OF_CLASSES or not dunder or special
        if type(target).__module__ in self._own_modules:
            known = ("__dict__", "__doc__", "__dataclass_fields__")
            return not dunder or name in known or self._defines(type(target), name)
        return (
            not name.startswith("_")
            or name in _OF_RECORDS
            or (name == "__dict__" and f"{type(target).__module__}.{type(target).__qualname__}" in _RECORDS)
        )


class Trusting:
    """The solution's process accepts whatever the suite sends, and serves every request."""

    def spot(self, what: str, target: Any, name: Any) -> str:
        return ""

    def moment(self, spot: str, arguments: Any, encode: Any) -> Moment:
        return _NEVER

    def stays(self, moment: Moment, label: str, content: Any) -> bool:
        return True

    def act(self, target: Any, does: Callable[[], Any], moment: Moment) -> Any:
        return does()

    def place(self, target: Any, suffix: str, args: tuple[Any, ...] = ()) -> Place:
        return Place()

    def place_of_fault(self, place: Place) -> Place:
        return place

    def believed(self, place: Place, value: Any, moment: Moment) -> Any:
        return value

    def awaited(self, target: Any, value: Any) -> Any:
        return value

    def checks(self, what: str) -> bool:
        return True

    def refuses(self, target: Any, name: str, args: tuple[Any, ...]) -> bool:
        return False

    def nothing(self, *_: Any) -> None:
        """No rule."""

    named = derived = met = settle = ask = allow = leaves = raised = skips = hands = nothing


def _is_solutions(value: Any) -> bool:
    if state_of(value) is not None or isinstance(value, Bound):
        return True
    return isinstance(value, enum.Enum) and state_of(type(value)) is not None


def _name_of(path: str, key: str) -> str:
    return f"{os.path.basename(path)}:{key}"


def _kind_of(name: str) -> str:
    """Methods of one kind may stand for each other, such as those of `==` and `!=`."""
    if name in ("__eq__", "__ne__"):
        return _KINDS[0]
    return _KINDS[1] if name == "__contains__" else _KINDS[2] if name in COMPARING else _KINDS[3]


def _is_class_name(site: str) -> bool:
    return site.isidentifier() and site[0].isupper() and (len(site) == 1 or not site.isupper())


def holds_object(value: Any, depth: int = 0) -> bool:
    """Whether any part of it is no plain data."""
    if _is_solutions(value) or isinstance(value, (type, BaseException)):
        return True
    return depth < MAX_DEPTH and any(holds_object(part, depth + 1) for part in values.inside(value))
