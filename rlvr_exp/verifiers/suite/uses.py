"""How a suite's text uses the solution that it tests: names it takes, classes it means, what both sides must share.

Read by the trusted parent; none of it is executed. A name means a class where the text treats it as a class
(isinstance, deriving, an attribute of the class, an exception that is caught) or an instance of it as an object that is
no plain data. A call of a name decides nothing: functions are called, too.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from rlvr_exp.sandbox.harnesses.pytest.ambient import VOCABULARY, WORD

_THREADS = re.compile(r"thread|concurrent|async|sleep|\.wait|Timer|\.join\(|queue|signal", re.IGNORECASE)
_CAPITALISED = re.compile(r"[A-Z][A-Za-z0-9]*")
_CHECKS = {"isinstance": 1, "issubclass": 0, "assertIsInstance": 1, "assertNotIsInstance": 1}
_CHECKS |= dict.fromkeys(("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns"), 0)
"""Functions that take classes, with the index of the first such argument."""
_OF_PLAIN = frozenset(
    name
    for kind in (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
    for name in dir(kind)
)


@dataclass(frozen=True)
class Uses:
    """How one suite uses its solution."""

    classes: tuple[str, ...]
    """Classes whose instances it compares with plain data."""
    stars: tuple[str, ...]
    """Names that it reads and does not bind: what a star import may define."""
    words: tuple[str, ...]
    """Its words of `ambient.VOCABULARY`."""
    threads: bool
    """Whether it mentions threads, event loops or waiting."""


@lru_cache(256)
def uses_of(texts: tuple[str, ...]) -> Uses:
    """The uses of all files of a suite. Raises SyntaxError, ValueError for what is no Python."""
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {name for node in nodes for name in _bound(node)}
    words = {word for text in texts for word in WORD.findall(text)} & VOCABULARY
    threads = any(_THREADS.search(text) for text in texts)
    classes = sorted(set(_classes(nodes)))
    return Uses(tuple(classes), tuple(sorted(read - bound - set(dir(builtins)))), tuple(sorted(words)), threads)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias) and node.name != "*":
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _classes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Classes by the text's own use, whose instances it compares with plain data."""
    nodes = list(nodes)
    variables = dict(pair for node in nodes for pair in _given(node))
    used = {name for node in nodes for name in _named(node)}
    used |= {_class_of(call) for node in nodes for call in _as_objects(node, variables)}
    against = {_class_of(call) for node in nodes for call in _compared_with_plain(node, variables)}
    return iter(sorted(used & against))


def _given(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Variables and fixtures that get an instance, by name."""
    pairs: list[tuple[ast.AST | None, ast.AST | None]] = []
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += zip(target.elts, node.value.elts)  # noqa: B905  of one length
            else:
                pairs.append((target, node.value))
    elif isinstance(node, ast.FunctionDef) and _is_fixture(node):
        parts = (part.value for part in ast.walk(node) if isinstance(part, (ast.Return, ast.Yield)))
        pairs = [(ast.Name(node.name), part) for part in parts]
    for name, value in pairs:
        if (call := _construction(value, {})) and _target(name):
            yield _target(name), call


def _named(node: ast.AST) -> Iterator[str]:
    """Names that can only be a class in this place."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Call):
        places = node.args[_CHECKS.get(_last(node.func), len(node.args)) :]
    elif isinstance(node, ast.ClassDef):
        places = node.bases
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        places = [node.type]
    elif isinstance(node, ast.Attribute) and _CAPITALISED.fullmatch(_last(node.value)):
        places = [node.value]
    for place in places:
        for part in place.elts if isinstance(place, ast.Tuple) else [place]:
            yield from filter(None, [_last(part)])


def _as_objects(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """Calls of capitalised names whose results are used as no plain result is: by an attribute of their own, in a
    sum or an order with something else, as a container, compared with each other or with what they were built from."""
    if isinstance(node, ast.Attribute):
        call = _construction(node.value, variables)
        if call and node.attr not in _OF_PLAIN:
            yield call
    elif isinstance(node, (ast.BinOp, ast.Call)):
        yield from _operands(node, variables)
    elif isinstance(node, ast.Compare):
        calls = [(call, others, op) for call, others, op in _compared(node, variables) if call]
        names = [_class_of(call) for call, _, _ in calls]
        for call, others, op in calls:
            several = names.count(_class_of(call)) > 1
            if several or isinstance(op, (*_ORDERS, ast.In)) or any(_echoes(call, other) for other in others):
                yield call


def _compared_with_plain(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """Instances that are compared or counted with something that is no instance."""
    if isinstance(node, (ast.BinOp, ast.Call)):
        yield from _operands(node, variables)
    elif isinstance(node, ast.Compare):
        sides = [_construction(side, variables) for side in (node.left, *node.comparators)]
        if None in sides:
            yield from filter(None, sides)


def _operands(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """The operands of an operator, or of a function that applies an operator."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if isinstance(node, ast.Call) and _last(node.func) in _COUNTING:
        parts = node.args
    yield from filter(None, (_construction(part, variables) for part in parts))


def _compared(
    node: ast.Compare, variables: dict[str, ast.Call]
) -> Iterator[tuple[ast.Call | None, list[ast.expr], ast.cmpop]]:
    """(instance, what it is compared with, operator before it) of each side."""
    sides = [node.left, *node.comparators]
    for at, side in enumerate(sides):
        operator = node.ops[at - 1] if at else node.ops[0] if isinstance(node.ops[0], _ORDERS) else ast.Eq()
        yield _construction(side, variables), sides[:at] + sides[at + 1 :], operator


_COUNTING = ("divmod", "pow", "sum", "max", "min")


def _class_of(call: ast.Call) -> str:
    """`Point(1, 2)`, `shapes.Point(1, 2)`, `Point.origin()`."""
    name = _last(call.func)
    if isinstance(call.func, ast.Attribute) and not _CAPITALISED.fullmatch(name):
        return _last(call.func.value)
    return name


def _echoes(call: ast.Call, other: ast.AST) -> bool:
    """`Money(5) == 5`, `Vector(1, 2) == (1, 2)`."""
    if not call.args or call.keywords:
        return False
    forms = [call.args[0]] if len(call.args) == 1 else []
    forms += [kind(list(call.args), ast.Load()) for kind in (ast.Tuple, ast.List)]
    return any(ast.dump(form) == ast.dump(other) for form in forms)


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _construction(node: ast.AST | None, variables: dict[str, ast.Call]) -> ast.Call | None:
    """The call of a capitalised name that an expression is, or that was assigned to a variable."""
    if isinstance(node, ast.Call):
        return node if _CAPITALISED.fullmatch(_class_of(node)) else None
    return variables.get(_target(node)) if node is not None else None


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _target(node: ast.AST | None) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _is_fixture(node: ast.FunctionDef) -> bool:
    return any("fixture" in ast.unparse(mark) for mark in node.decorator_list)
