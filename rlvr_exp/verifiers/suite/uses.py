"""What a suite's text says of the solution that it tests: names it takes, classes it means, what both sides must share.

Read by the trusted parent; nothing of it is executed. A name is one of a class where the text treats it as one
(isinstance, deriving, an attribute of the class, an exception that is caught) or an instance of it as an object that is
no plain data. That a name is called says nothing: a function is, too.
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
_CHECKS = ("isinstance", "issubclass", "raises", "assertRaises", "assertRaisesRegex", "assertIsInstance", "warns")
_OF_PLAIN = frozenset(
    name
    for kind in (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
    for name in dir(kind)
)


@dataclass(frozen=True)
class Uses:
    """Of one suite."""

    classes: tuple[str, ...]
    stars: tuple[str, ...]
    """Names that it reads and does not bind: what a star import may bring."""
    words: tuple[str, ...]
    """Of `ambient.VOCABULARY`."""
    threads: bool
    """It speaks of threads, event loops or waiting."""


@lru_cache(256)
def uses_of(texts: tuple[str, ...]) -> Uses:
    """Of all files of a suite. Raises SyntaxError, ValueError for what is no Python."""
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
    nodes = list(nodes)
    variables: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and (name := _constructed(node.value)):
            variables |= {_target(target): name for target in node.targets}
        elif isinstance(node, ast.With):
            variables |= {_target(item.optional_vars): _constructed(item.context_expr) for item in node.items}
        elif isinstance(node, ast.FunctionDef) and _is_fixture(node):
            made = [_constructed(part.value) for part in ast.walk(node) if isinstance(part, (ast.Return, ast.Yield))]
            variables |= {node.name: name for name in made if name}
    for node in nodes:
        yield from _named(node, variables)


def _named(node: ast.AST, variables: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Call) and _last(node.func) in _CHECKS:
        yield from (_last(part) for arg in node.args for part in ast.walk(arg) if isinstance(part, (ast.Name, ast.Attribute)))
    elif isinstance(node, ast.ClassDef):
        yield from map(_last, node.bases)
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield from (_last(part) for part in ast.walk(node.type) if isinstance(part, (ast.Name, ast.Attribute)))
    elif isinstance(node, ast.Attribute):
        if isinstance(node.value, (ast.Name, ast.Attribute)) and _CAPITALISED.fullmatch(_last(node.value)):
            yield _last(node.value)
        name = _constructed(node.value) or variables.get(_target(node.value), "")
        if name and node.attr not in _OF_PLAIN:
            yield name
    elif isinstance(node, ast.Compare):
        made = [_constructed(part) for part in (node.left, *node.comparators)]
        yield from (name for name in made if name and made.count(name) > 1)
    elif isinstance(node, ast.BinOp) and (name := _constructed(node.left)) and name == _constructed(node.right):
        yield name


def _constructed(node: ast.AST | None) -> str:
    """The capitalised name that an expression calls."""
    name = _last(node.func) if isinstance(node, ast.Call) else ""
    return name if _CAPITALISED.fullmatch(name) else ""


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _target(node: ast.AST | None) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _is_fixture(node: ast.FunctionDef) -> bool:
    return any("fixture" in ast.unparse(mark) for mark in node.decorator_list)
