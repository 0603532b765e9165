"""A suite in its running form: its code, with what its text says. As bytes, it serves further runs of the suite.

Most of a small suite's time would go into parsing, rewriting and compiling it for every candidate. Its first run sends the bytes,
before it has anything to do with a solution. Standard library and pytest only.
"""

import ast
import marshal
import os
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple

from _pytest.assertion.rewrite import AssertionRewriter
from _pytest.config import Config

from rlvr_exp.sandbox.harnesses.pytest import texts


class Managed(NamedTuple):
    """A `with` block: its first and its last line, and the last lines of its assertions."""

    first: int
    last: int
    asserted: list[int]


@dataclass(frozen=True)
class Assertions:
    """The functions of a suite that assert, themselves or by a function of the suite, as (file, key)."""

    all: frozenset[tuple[str, str]]
    own: frozenset[tuple[str, str]]
    """Those that assert, or catch, in their own text, apart from functions within it."""
    asynchronous: frozenset[tuple[str, str]]
    watched: frozenset[tuple[str, str]]
    """Those that assert, all lambdas, and those that pytest may take as tests: they tell their end."""

    def ran(self, test: tuple[str, str], ended: Set[tuple[str, str]]) -> bool:
        """Whether a function that asserts is among those that ended, if all assertions of a test are in such functions."""
        return test not in self.all or test in self.own or not self.all.isdisjoint(ended - {test})


@dataclass(frozen=True)
class Compiled:
    """A suite. Its files are named by their paths, but in `names`."""

    names: tuple[str, ...]
    """Of its files, in their folder."""
    codes: dict[str, CodeType]
    managed: dict[str, list[Managed]]
    assertions: Assertions
    texts: frozenset[str]
    """Its constants and annotations."""
    data: bytes
    """For `read`."""


EMPTY = Compiled((), {}, {}, Assertions(*(frozenset(),) * 4), frozenset(), b"")


def compiled(tests: Mapping[str, str], folder: str, config: Config) -> Compiled:
    """Compile test files (name, text). Raises SyntaxError, ValueError."""
    trees = {name: ast.parse(text, name) for name, text in tests.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    own = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in nodes):
        own |= {ast.unparse(hint) for node in nodes for hint in _annotations_of(node)}
    managed, assertions = _managed(trees), _assertions_of(trees)
    codes = {}
    for name, tree in trees.items():
        texts.transform(tree, {key for file, key in assertions.watched if file == name})
        AssertionRewriter(name, config, tests[name].encode("utf-8", "replace")).run(tree)
        codes[name] = compile(tree, name, "exec", dont_inherit=True)
    kinds = (assertions.all, assertions.own, assertions.asynchronous, assertions.watched)
    blocks = {name: [tuple(block) for block in found] for name, found in managed.items()}
    return read(marshal.dumps([codes, blocks, [[*kind] for kind in kinds], [*own]]), folder)


def read(data: bytes, folder: str) -> Compiled:
    """The suite as it was compiled, in another folder."""
    codes, managed, facts, own = marshal.loads(data)
    paths = {name: os.path.join(folder, name) for name in codes}
    assertions = Assertions(*(frozenset((paths[name], key) for name, key in kind) for kind in facts))
    blocks = {paths[name]: [Managed(*block) for block in found] for name, found in managed.items()}
    placed = {paths[name]: _placed(code, paths[name]) for name, code in codes.items()}
    return Compiled((*codes,), placed, blocks, assertions, frozenset(own), data)


def _placed(code: CodeType, path: str) -> CodeType:
    parts = (_placed(part, path) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=path, co_consts=tuple(parts))


def _managed(suite: Mapping[str, ast.Module]) -> dict[str, list[Managed]]:
    """By file."""
    found: dict[str, list[Managed]] = {}
    for name, tree in suite.items():
        blocks = [node for node in ast.walk(tree) if isinstance(node, (ast.With, ast.AsyncWith))]
        found[name] = [
            Managed(
                block.lineno,
                block.end_lineno or 0,
                [node.end_lineno or 0 for node in ast.walk(block) if _asserts(node)],
            )
            for block in blocks
        ]
    return found


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", "")).startswith("assert")


_TESTS = re.compile("test|runTest|<lambda>")


def _assertions_of(suite: Mapping[str, ast.Module]) -> Assertions:
    """Of a suite's files."""
    functions = {
        (name, texts.key_of_node(node)): node
        for name, tree in suite.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    }
    found: set[tuple[str, str]] = set()
    names: set[str] = set()
    while new := [key for key, node in functions.items() if key not in found and _asserts_by(node, names)]:
        found.update(new)
        names.update(key.partition(" ")[2] for _, key in new)
    own = {key for key in found if any(map(_decides, _own_nodes(functions[key])))}
    asynchronous = {key for key in found if isinstance(functions[key], ast.AsyncFunctionDef)}
    tests = {key for key in functions if _TESTS.match(key[1].partition(" ")[2])}
    return Assertions(frozenset(found), frozenset(own), frozenset(asynchronous), frozenset(found | tests))


def _asserts_by(function: ast.AST, names: set[str]) -> bool:
    return any(_asserts(node) or _named(node) in names for node in ast.walk(function))


def _named(node: ast.AST) -> str:
    """The name of a function, by itself or of `self`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _decides(node: ast.AST) -> bool:
    name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    return _asserts(node) or name in texts.CATCHING or name in ("fail", "warns") or isinstance(node, ast.Raise)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _own_nodes(node)


def _annotations_of(node: ast.AST) -> Iterator[ast.expr]:
    for name in ("annotation", "returns"):
        if isinstance(hint := getattr(node, name, None), ast.expr):
            yield hint
