"""Comparisons that a suite makes, done so that an object which is equal to everything gives itself away.

A suite's `==`, `!=`, orderings and `in` come here, by its rewritten syntax tree and by unittest's assertions. Where
one side is an object whose comparing the solution wrote and the other is plain data, the object is also asked about
values that nobody expects, in an order that it cannot foresee; one that is equal to most of them lies. Classes that
compare honestly with plain data never notice. Not covered: an object used for its truth alone, and comparing inside
libraries. Standard library and pytest only.
"""

import ast
import operator
import random
import unittest
from collections import deque
from collections.abc import Callable, Iterable
from types import FunctionType, WrapperDescriptorType
from typing import Any

from _pytest import approx
from _pytest.assertion.rewrite import AssertionRewriter

_APPROX = getattr(approx, "Approx", None) or approx.ApproxBase  # its name before pytest 9.1
COMPARE, CHAIN, DIFFERENCE, AMONG, LOOKING = "@compare", "@chain", "@difference", "@among", "@looking"
LYING = "lying-equality"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
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
_COMPARING = ("array_equal", "array_equiv", "allclose", "isclose", "equals", "eq", "ne", "is_")
"""Functions of libraries that compare two arguments, beside those named assert_..."""
_FAR = 1e308
_DECOYS, _DEPTH, _WIDTH = 12, 6, 2000
_draw = random.SystemRandom()
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
        self.mocks = True
        """The suite itself uses objects that are equal to anything."""

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """`left OP right`, after a look at both."""
        if type(left) not in _SCALARS or type(right) not in _SCALARS:
            self.look(name, left, right, _DEPTH)
        return _OPERATORS[name](left, right)

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
        if ours != theirs and type(right if ours else left) in (int, float):
            suspect, other = (left, right) if ours else (right, left)
            found = [abs(suspect - decoy if ours else decoy - suspect) for decoy in _decoys(other)]
            self._judge((one == two for one, two in zip(found, found[1:], strict=False)), suspect)
        return left - right

    def among(self, subject: Any, *values: Any) -> Any:
        """The subject of a `match`, after a look at the plain values that it is matched with."""
        for value in values:
            self.look("Eq", subject, value, _DEPTH)
        return subject

    def looking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A library's comparison of its first two arguments, after a look at both."""

        def looked(*args: Any, **kwargs: Any) -> Any:
            if len(args) > 1:
                self.look("Eq", args[0], args[1], _DEPTH)
            return function(*args, **kwargs)

        return looked

    def names(self) -> dict[str, Callable[..., Any]]:
        """What a rewritten suite calls."""
        return {
            COMPARE: self.compare,
            CHAIN: self.chain,
            DIFFERENCE: self.difference,
            AMONG: self.among,
            LOOKING: self.looking,
        }

    def _subtracts(self, value: Any) -> bool:
        kind = type(value)
        return kind not in _SCALARS and any(self._of_the_solution(kind, name) for name in _ARITHMETIC)

    def look(self, name: str, left: Any, right: Any, depth: int) -> None:
        """Ask whatever of the two could lie."""
        ours, theirs = self._suspect(left), self._suspect(right)
        if ours and theirs or depth == 0:
            return
        if name in ("In", "NotIn"):
            self._look_inside(left, right, ours, theirs, depth)
        elif ours or theirs:
            self._ask(name, *((left, right) if ours else (right, left)), swapped=theirs)
        elif name in ("Eq", "NotEq"):
            for one, other in self._paired(_members(left), _members(right)):
                self.look(name, one, other, depth - 1)

    def _paired(self, left: Any, right: Any) -> list[tuple[Any, Any]]:
        if type(left) is not type(right) or left is None:
            return []
        if type(left) is dict:
            return [(left[key], right[key]) for key in list(left)[:_WIDTH] if type(key) in _SCALARS and key in right]
        if type(left) is set:  # in no order: whoever could lie is asked about somebody of the other side
            suspects = [member for side in (left, right) for member in list(side)[:_WIDTH] if self._suspect(member)]
            return [
                (suspect, other) for suspect in suspects for other in list(left | right)[:3] if other is not suspect
            ]
        return list(zip(left[:_WIDTH], right[:_WIDTH], strict=False))

    def _look_inside(self, left: Any, right: Any, ours: bool, theirs: bool, depth: int) -> None:
        if theirs and _plain(left):
            self._judge((decoy in right for decoy in _decoys(left)), right)
        elif ours and type(right) in _CONTAINERS:
            for element in list(right)[:_WIDTH]:
                self.look("Eq", left, element, depth - 1)

    def _ask(self, name: str, suspect: Any, other: Any, swapped: bool) -> None:
        other = other.expected if isinstance(other, _APPROX) else other
        other = other.tolist() if type(other).__module__ == "numpy" and hasattr(other, "tolist") else other
        if not _plain(other):
            return
        if name in ("Eq", "NotEq"):
            same = _OPERATORS[name]
            holds = (lambda value: value == suspect) if swapped else (lambda value: suspect == value)
            if name == "NotEq":
                holds = (
                    (lambda value: not same(value, suspect)) if swapped else (lambda value: not same(suspect, value))
                )
            self._judge((holds(decoy) for decoy in _decoys(other)), suspect)
        elif type(other) in (int, float):
            sides = ((other, suspect), (-_FAR, suspect)) if swapped else ((suspect, other), (suspect, -_FAR))
            ordered, against = _OPERATORS[name], _OPPOSITE[name]
            if ordered(*sides[0]) and (against(*sides[0]) or ordered(suspect, -_FAR) and ordered(suspect, _FAR)):
                self._refuse(LYING, f"a {type(suspect).__name__} is ordered both ways")

    def _judge(self, answers: Iterable[Any], suspect: Any) -> None:
        said = [bool(answer) for answer in answers]
        if sum(said) * 3 > len(said):
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


def _decoys(value: Any) -> list[Any]:
    """Values of the same type that are not `value`, and the value itself somewhere between, so that it is no sign."""
    found = [_other(value, number) for number in range(1, _DECOYS + 1)]
    _draw.shuffle(found)
    return found[: _draw.randint(_DECOYS // 2, _DECOYS)]


def _other(value: Any, number: int) -> Any:
    far = number * _draw.randint(1, 1000)
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


class Rewriter(AssertionRewriter):
    """pytest's rewriting of asserts, their comparisons sent to `COMPARE`."""

    def visit_Compare(self, comp: ast.Compare) -> tuple[ast.expr, str]:
        start = len(self.statements)
        result = super().visit_Compare(comp)
        for statement in self.statements[start:]:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Compare):
                statement.value = _call(statement.value)
        return result


class _Elsewhere(ast.NodeTransformer):
    """Comparisons outside of what the rewriter visits."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self._inside(node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return _call(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _calling(DIFFERENCE, node, node.left, node.right) if isinstance(node.op, ast.Sub) else node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        self.generic_visit(node)
        patterns = (part for case in node.cases for part in ast.walk(case.pattern) if isinstance(part, ast.MatchValue))
        values = [ast.Constant(part.value.value) for part in patterns if isinstance(part.value, ast.Constant)]
        node.subject = _calling(AMONG, node.subject, node.subject, *values)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if len(node.args) > 1 and (name.startswith("assert_") or name in _COMPARING):
            node.func = _calling(LOOKING, node.func, node.func)
        return node

    def _inside(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._inside(value)
        elif isinstance(node, ast.UnaryOp):
            self._inside(node.operand)
        else:
            self.generic_visit(node)


def instrument(tree: ast.Module) -> None:
    """Send every comparison to the `Comparer`, but for those of asserts, which `Rewriter` sends."""
    _Elsewhere().visit(tree)


def _call(node: ast.Compare) -> ast.expr:
    names = [type(operation).__name__ for operation in node.ops]
    if not all(name in _OPERATORS for name in names):
        return node
    if len(names) == 1:
        return _calling(COMPARE, node, ast.Constant(names[0]), node.left, node.comparators[0])
    return _calling(CHAIN, node, ast.Constant(tuple(names)), node.left, *node.comparators)


def _calling(name: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    """A call in place of an expression."""
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(args), []), place))


def watch_unittest(look: Callable[[str, Any, Any, int], None]) -> None:
    """unittest's assertions look first. Before its classes are frozen."""
    for name, operation in _ASSERTIONS.items():
        setattr(unittest.TestCase, name, _looking(getattr(unittest.TestCase, name), operation, look))


def _looking(plain: Callable[..., None], operation: str, look: Callable[[str, Any, Any, int], None]) -> Any:
    def assertion(self: unittest.TestCase, first: Any, second: Any, *args: Any, **kwargs: Any) -> None:
        look(operation, first, second, _DEPTH)
        plain(self, first, second, *args, **kwargs)

    assertion.__name__, assertion.__doc__ = plain.__name__, plain.__doc__
    return assertion


def watch_approx(made: Callable[[], None]) -> None:
    """Whoever makes an approximate value is asked for first: a solution that returns one returns anything."""
    plain = _APPROX.__init__

    def __init__(self: _APPROX, *args: Any, **kwargs: Any) -> None:
        made()
        plain(self, *args, **kwargs)

    _APPROX.__init__ = __init__
