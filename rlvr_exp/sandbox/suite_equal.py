"""Comparisons that a suite makes, done so that an object which is equal to everything gives itself away.

A suite's `==`, `!=`, orderings and `in` come here, by its rewritten syntax tree and by unittest's assertions. Where
one side is an object whose comparing the solution wrote and the other is plain data, the object is asked about a whole
cell of values (`suite_cells`) and others far off, in an order that it cannot foresee; one that is equal to most of them
lies; one that keeps what it was shown knows the expected value no better than twelve others. Containers are
compared here member by member, so that no member is asked by itself. Classes that compare honestly with plain data
never notice. Not covered: an object used for its truth alone, and comparing inside libraries.
Standard library and pytest only.
"""

import operator
import random
import secrets
import sys
import unittest
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cmp_to_key
from types import FunctionType, WrapperDescriptorType
from typing import Any

from _pytest import approx

from rlvr_exp.sandbox.suite_cells import cell, shifted
from rlvr_exp.sandbox.suite_star import STAR, star

_APPROX = getattr(approx, "Approx", None) or approx.ApproxBase  # its name before pytest 9.1
COMPARE, CHAIN, DIFFERENCE, AMONG, LOOKING = ("@compare", "@chain", "@difference", "@among", "@looking")
MEMBER, RANKED = "@member", "@ranked"
_RANKED = (max, min, sorted)
LYING, SHADOWS = "lying-equality", "shadows-builtin"
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda left, right: left in right,
    "NotIn": lambda left, right: left not in right,
}
_OPPOSITE = {"Lt": operator.gt, "LtE": operator.gt, "Gt": operator.lt, "GtE": operator.lt}
_SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))
_METHODS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getattribute__")
_ARITHMETIC = ("__sub__", "__rsub__", "__abs__", "__getattribute__")
_FAR = 1e308
_MOST = 0.45
"""Numbers modulo 3 are equal to a third of all."""
_DECOYS, _DEPTH, _WIDTH = 10, 6, 2000
_draw = random.SystemRandom()
_STRANGE = (10**30, -(10**30) - 1, 10**33 + 7, 1e300, "\x01zq", "~|~", "#0", (0, "q"), (None,), frozenset(("q",)))
"""What a collection of anything sensible does not hold."""
_ASSERTIONS = {
    "assertEqual": "Eq", "assertAlmostEqual": "Eq", "assertListEqual": "Eq", "assertTupleEqual": "Eq",
    "assertDictEqual": "Eq", "assertSetEqual": "Eq", "assertSequenceEqual": "Eq", "assertCountEqual": "Eq",
    "assertMultiLineEqual": "Eq", "assertIn": "In", "assertLess": "Lt", "assertLessEqual": "LtE",
    "assertGreater": "Gt", "assertGreaterEqual": "GtE",
}  # fmt: skip


class Comparer:
    """Compares, and refuses liars. `written_by_the_solution(function)` says whose a method is."""

    def __init__(self, written_by_the_solution: Callable[[FunctionType], bool], refuse: Callable[[str, str], None]):
        self._theirs, self._refuse = written_by_the_solution, refuse
        self._salt = secrets.token_bytes(16)
        self.mocks = True
        """The suite itself uses objects that are equal to anything."""

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """`left OP right`; a suspect is asked about more than that."""
        if type(left) in _SCALARS and type(right) in _SCALARS:
            return OPERATORS[name](left, right)
        return self._compared(name, left, right, _DEPTH)

    def chain(self, names: tuple[str, ...], *values: Any) -> Any:
        """`a OP b OP c`, all of its values known."""
        result: Any = True
        for name, left, right in zip(names, values, values[1:], strict=False):
            result = self.compare(name, left, right)
            if not result:
                break
        return result

    def difference(self, left: Any, right: Any) -> Any:
        """`left - right`: an object that is equally far from all numbers lies as one does that equals them."""
        ours, theirs = self._subtracts(left), self._subtracts(right)
        if ours == theirs or type(right if ours else left) not in (int, float):
            return left - right
        suspect, other = (left, right) if ours else (right, left)
        subtract = (lambda value: left - value) if ours else (lambda value: value - right)
        answers, _, answer = self._asked(subtract, other, _same)
        far = [abs(found) for found in answers]
        self._judge([one == two for one, two in zip(far, far[1:], strict=False)], suspect)
        return answer()

    def among(self, subject: Any, *values: Any) -> Any:
        """The subject of a `match`, after a look at the plain values that it is matched with."""
        for value in values:
            self.look("Eq", subject, value)
        return subject

    def looking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A library's comparison of its first two arguments, after a look at both."""

        def looked(*args: Any, **kwargs: Any) -> Any:
            if len(args) > 1:
                self.look("Eq", args[0], args[1])
            return function(*args, **kwargs)

        return looked

    def look(self, name: str, left: Any, right: Any) -> None:
        """Ask whatever of the two could lie; the comparison itself is somebody else's."""
        if type(left) not in _SCALARS or type(right) not in _SCALARS:
            with suppress(Exception):
                self._compared(name, left, right, _DEPTH)

    def settled(self, name: str, left: Any, right: Any) -> bool | None:
        """The same, and how it came out where one of the two is a suspect, not to be asked again; else None."""
        if type(left) in _SCALARS and type(right) in _SCALARS:
            return None
        answer = self._compared(name, left, right, _DEPTH)
        suspects = self._suspect(left) or self._suspect(right) or self._holds_suspects(left, right, _DEPTH)
        return bool(answer) if suspects else None

    def member(self, name: str, sequence: Any, value: Any) -> Any:
        """`sequence.count(value)` and its like."""
        if type(sequence) in (list, tuple) and (self._suspect(value) or self._any_suspect(list(sequence))):
            at = [at for at, member in enumerate(sequence) if self._equal(member, value, _DEPTH)]
            if name == "count":
                return len(at)
            if not at:
                raise ValueError("not in the sequence")
            return at[0] if name == "index" else sequence.pop(at[0])
        return getattr(sequence, name)(value)

    def ranked(self, function: Callable[..., Any], *values: Any) -> Any:
        """`max`, `min` and `sorted`, by comparisons that are watched."""
        if function not in _RANKED:
            return function(*values)
        values = values[0] if len(values) == 1 else values
        values = list(values)
        if not self._any_suspect(values):
            return function(values)
        return function(values, key=cmp_to_key(self._order_of))

    def _order_of(self, left: Any, right: Any) -> int:
        return -1 if self.compare("Lt", left, right) else int(bool(self.compare("Lt", right, left)))

    def star(self, namespace: dict[str, Any]) -> None:
        """A wildcard import from the solution."""
        star(namespace, lambda name: self._refuse(SHADOWS, f"{name} of the solution is not the builtin"))

    def names(self) -> dict[str, Callable[..., Any]]:
        """What a rewritten suite calls."""
        return {
            COMPARE: self.compare,
            CHAIN: self.chain,
            DIFFERENCE: self.difference,
            AMONG: self.among,
            LOOKING: self.looking,
            STAR: self.star,
            MEMBER: self.member,
            RANKED: self.ranked,
        }

    def _subtracts(self, value: Any) -> bool:
        kind = type(value)
        return kind not in _SCALARS and any(self._of_the_solution(kind, name) for name in _ARITHMETIC)

    def _compared(self, name: str, left: Any, right: Any, depth: int) -> Any:
        ours, theirs = self._suspect(left), self._suspect(right)
        if name in ("In", "NotIn"):
            found = self._inside(left, right, ours, theirs, depth)
            return found if name == "In" else not found
        if ours != theirs:
            return self._answer(name, *((left, right) if ours else (right, left)), swapped=theirs)
        if not ours and name in ("Eq", "NotEq") and depth and self._holds_suspects(left, right, depth):
            one, two = (_spread(side) if isinstance(side, _APPROX) else side for side in (left, right))
            same = self._alike(one, two, depth - 1)
            if same is not None:
                return same if name == "Eq" else not same
        if not ours and name in _OPPOSITE and depth and self._holds_suspects(left, right, depth):
            return self._ordered(name, left, right, depth - 1)
        return OPERATORS[name](left, right)

    def _equal(self, left: Any, right: Any, depth: int) -> bool:
        """As members of containers are compared."""
        return left is right or bool(self._compared("Eq", left, right, depth))

    def _alike(self, left: Any, right: Any, depth: int) -> bool | None:
        """Containers member by member, in their own terms; None where those are others."""
        one, two = _members(left), _members(right)
        if type(one) is not type(two) or isinstance(left, tuple) != isinstance(right, tuple):
            return None
        if len(one) != len(two):
            return False
        if type(one) is dict:
            ordered = isinstance(left, OrderedDict) and isinstance(right, OrderedDict)
            if ordered and list(one) != list(two):
                return False
            return all(key in two and self._equal(part, two[key], depth) for key, part in one.items())
        if type(one) is set:
            return all(self._inside(member, two, self._suspect(member), False, depth) for member in one)
        return all(self._equal(*pair, depth) for pair in zip(one, two, strict=True))

    def _ordered(self, name: str, left: Any, right: Any, depth: int) -> Any:
        """Sequences by the first pair that differs."""
        if type(left) is type(right) and type(left) in (list, tuple):
            for one, two in zip(left, right, strict=False):
                if not self._equal(one, two, depth):
                    return self._compared(name, one, two, depth)
            left, right = len(left), len(right)
        return OPERATORS[name](left, right)

    def _inside(self, left: Any, right: Any, ours: bool, theirs: bool, depth: int) -> Any:
        if theirs and not ours:
            plain = _plain_of(left)
            return left in right if plain is None else self._contains(right, *plain)
        members = _members(right) if type(right) in _CONTAINERS and depth else None
        if members is None or not (ours or self._any_suspect(members)):
            return left in right
        if type(members) in (set, dict):
            key = hash(left)
            members = [member for member in members if hash(member) == key]
        return any(self._equal(member, left, depth - 1) for member in members)

    def _contains(self, suspect: Any, plain: Any, like: Callable[[Any], Any]) -> Any:
        """Neighbours may well be inside; what is far off, of an odd kind and of no end, is not."""
        _, far, answer = self._asked(lambda value: value in suspect, plain, like, _STRANGE)
        self._judge(far, suspect)
        return answer()

    def _answer(self, name: str, suspect: Any, other: Any, swapped: bool) -> Any:
        operation = OPERATORS[name]
        compare = (lambda value: operation(value, suspect)) if swapped else (lambda value: operation(suspect, value))
        plain = _plain_of(other)
        if plain is None:
            return compare(other)
        near, far, answer = self._asked(compare, *plain)
        if name in ("Eq", "NotEq"):
            self._judge([_truth(said) == (name == "Eq") for said in (*near, *far)], suspect)
        elif type(plain[0]) in (int, float):
            self._order(name, suspect, plain[0], swapped, answer)
        return answer()

    def _order(self, name: str, suspect: Any, other: Any, swapped: bool, answer: Callable[[], Any]) -> None:
        sides = ((other, suspect), (-_FAR, suspect)) if swapped else ((suspect, other), (suspect, -_FAR))
        ordered, against = OPERATORS[name], _OPPOSITE[name]
        if _truth(answer()) and (against(*sides[0]) or ordered(suspect, -_FAR) and ordered(suspect, _FAR)):
            self._refuse(LYING, f"a {type(suspect).__name__} is ordered both ways")

    def _asked(
        self, ask: Callable[[Any], Any], value: Any, like: Callable[[Any], Any], strange: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], Callable[[], Any]]:
        """Ask about the value's whole cell and about values far off, in an order of chance and of the cell twice.

        Returns the answers about the others of the cell, those about the far ones, and how to have the value's own.
        """
        known = cell(value) if _is_small(value) else [value, shifted(value, 4), shifted(value, 8)]
        values = [*known, *(strange or _decoys(known, self._salt))]
        order = [*range(len(values)), *range(len(known))]
        _draw.shuffle(order)
        while len(known) > 1 and 0 in (order[0], order[-1]):  # where an object looks first
            _draw.shuffle(order)
        said: dict[int, Callable[[], Any]] = {}
        for at in order:
            found = _outcome(ask, like(shifted(values[at], 0)))
            if at in said and _truth(_value(said[at])) != _truth(_value(found)):
                self._refuse(LYING, "an object answers the same question in two ways")
            said.setdefault(at, found)
        near = [_value(said[at]) for at in range(1, len(known))]
        return (near, [_value(said[at]) for at in range(len(known), len(values))], said[0])

    def _holds_suspects(self, left: Any, right: Any, depth: int) -> bool:
        return any(self._any_suspect(_members(side), depth) for side in (left, right))

    def _any_suspect(self, members: Any, depth: int = 1) -> bool:
        if members is None or depth == 0:
            return False
        parts = members.values() if type(members) is dict else members
        if set(map(type, parts)) <= _SCALARS and (type(members) is not dict or set(map(type, members)) <= _SCALARS):
            return False
        return any(self._suspect(part) or self._any_suspect(_members(part), depth - 1) for part in parts)

    def _judge(self, answers: Iterable[Any], suspect: Any) -> None:
        said = [_truth(answer) for answer in answers]
        if sum(said) > len(said) * _MOST:
            self._refuse(LYING, f"a {type(suspect).__name__} is equal to {sum(said)} of {len(said)} other values")

    def _suspect(self, value: Any) -> bool:
        kind = type(value)
        if kind in _SCALARS or kind in _CONTAINERS:
            return False
        if not self.mocks and kind.__module__ == "unittest.mock":
            return True
        return any(self._of_the_solution(kind, name) for name in _METHODS)

    def _of_the_solution(self, kind: type, name: str) -> bool:
        for cls in type.__dict__["__mro__"].__get__(kind):
            method = type.__dict__["__dict__"].__get__(cls).get(name)
            if method is not None:
                if isinstance(method, FunctionType):
                    return self._theirs(method)
                return not isinstance(method, WrapperDescriptorType) and not _of_c(cls)
        return False


def _of_c(cls: type) -> bool:
    return not type.__dict__["__flags__"].__get__(cls) & (1 << 9)


def _plain(value: Any, depth: int = _DEPTH) -> bool:
    if type(value) in _SCALARS:
        return True
    if type(value) not in _CONTAINERS or depth == 0:
        return False
    parts = [*value.keys(), *value.values()] if type(value) is dict else value
    return all(_plain(part, depth - 1) for part in list(parts)[:_WIDTH])


def _members(value: Any) -> Any:
    """The content of a container, whatever its class says of itself, as a list, dict or set; else None."""
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, (set, frozenset)):
        return {*(set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value))}
    for kind in (list, tuple, deque):
        if isinstance(value, kind):
            return list(kind.__iter__(value))
    return None


def _plain_of(other: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """What an expected value comes to as plain data, and how to make another of its kind; None for what is not."""
    if isinstance(other, _APPROX):
        return (other.expected, _approximate(other)) if _plain(other.expected) else None
    if type(other).__module__ == "numpy" and hasattr(other, "tolist"):
        kind = other.dtype
        make = kind.type if other.ndim == 0 else lambda value: sys.modules["numpy"].array(value, dtype=kind)
        return (other.tolist(), make) if _plain(other.tolist()) else None
    return (other, _same) if _plain(other) else None


def _spread(other: Any) -> Any:
    """An approximate sequence or mapping as one of approximate numbers."""
    make = approx.approx

    def each(value: Any) -> Any:
        return make(value, rel=other.rel, abs=other.abs, nan_ok=other.nan_ok)

    expected = other.expected
    if type(expected) is dict:
        return {key: each(value) for key, value in expected.items()}
    return type(expected)(map(each, expected)) if type(expected) in (list, tuple) else other


def _approximate(other: Any) -> Callable[[Any], Any]:
    return lambda value: type(other)(value, rel=other.rel, abs=other.abs, nan_ok=other.nan_ok)


def _same(value: Any) -> Any:
    return value


def _outcome(ask: Callable[[Any], Any], value: Any) -> Callable[[], Any]:
    """What came of asking, to be had again: a value, or the exception that it raised."""
    try:
        found = ask(value)
    except Exception as fault:
        return _raising(fault)
    return lambda: found


def _raising(fault: Exception) -> Callable[[], Any]:
    def again() -> Any:
        raise fault

    return again


def _truth(answer: Any) -> bool:
    try:
        return bool(answer)
    except Exception:  # as of an array
        return False


def _is_small(value: Any) -> bool:
    return type(value) in _SCALARS or len(value) <= _WIDTH


def _value(outcome: Callable[[], Any]) -> Any:
    """For values that nobody expects, to refuse them is to say no."""
    try:
        return outcome()
    except Exception:
        return False


def _decoys(known: list[Any], salt: bytes) -> list[Any]:
    """Values of the same type that are far from a cell's: the same ones whichever of it was named."""
    first = min(known, key=repr)
    rng = random.Random(salt + repr(first).encode("utf-8", "replace"))
    found = [_other(first, number, rng) for number in range(1, _DECOYS + 1)]
    return [value for value in found if value not in known]


def _other(value: Any, number: int, rng: random.Random) -> Any:
    far = number * rng.randint(1, 1000)
    if value is None or type(value) is bool:
        return (
            (not value, far, f"{far}", [far])[number % 4] if value is not True else (False, far + 1, "", [])[number % 4]
        )
    if type(value) in (int, float, complex):
        return value + (far if number % 2 else -far)
    if type(value) in (str, bytes):
        more = str(far) if type(value) is str else str(far).encode()
        return (value + more, more + value, more, value[1:] + more)[number % 4]
    if type(value) is dict:
        return {**value, f"{far}": far} if number % 2 else {far: None}
    if type(value) in (set, frozenset):
        return value | {far, f"{far}"} if number % 2 else type(value)({f"{far}"})
    return (*value, far) if type(value) is tuple else [*value, far] if number % 2 else [far]


def watch_unittest(look: Callable[[str, Any, Any], None], settled: Callable[[str, Any, Any], bool | None]) -> None:
    """unittest's assertions look first. Before its classes are frozen."""
    for name, operation in _ASSERTIONS.items():
        setattr(unittest.TestCase, name, _looking(getattr(unittest.TestCase, name), operation, look, settled))


def _looking(
    plain: Callable[..., None],
    operation: str,
    look: Callable[[str, Any, Any], None],
    settled: Callable[[str, Any, Any], bool | None],
) -> Any:
    def assertion(self: unittest.TestCase, first: Any, second: Any, *args: Any, **kwargs: Any) -> None:
        holds = settled(operation, first, second) if operation in ("Eq", "In") else look(operation, first, second)
        if holds:
            return
        if holds is False and plain.__name__ not in ("assertAlmostEqual", "assertCountEqual"):
            raise self.failureException(f"{type(first).__name__} against {type(second).__name__}: {plain.__name__}")
        if plain.__name__ == "assertAlmostEqual":
            first, second = _number(first), _number(second)
        plain(self, first, second, *args, **kwargs)

    assertion.__name__, assertion.__doc__ = plain.__name__, plain.__doc__
    return assertion


def _number(value: Any) -> Any:
    """A number of a class of its own, as the number that it is."""
    for kind in (int, float):
        if isinstance(value, kind) and type(value) is not kind:
            return kind.__pos__(value)
    return value


def watch_approx(made: Callable[[], None]) -> None:
    """Whoever makes an approximate value is asked for first: a solution that returns one returns anything."""
    plain = _APPROX.__init__

    def __init__(self: _APPROX, *args: Any, **kwargs: Any) -> None:
        made()
        plain(self, *args, **kwargs)

    _APPROX.__init__ = __init__
