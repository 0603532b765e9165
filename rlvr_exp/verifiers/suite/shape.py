"""The tests that a suite's text promises, read from its syntax tree by the trusted parent: none of it is executed.

A run must report every test promised here; so no solution can remove tests from a suite. Skips and expected failures
that the text itself decides, independently of the solution, are not counted; all others are tests that did not pass.
"""

import ast
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_PATCHING = ("monkeypatch", "mock", "patch", "setattr", "mocker")
_FACTS: dict[str, Any] = {
    "sys.version_info": tuple(sys.version_info),
    "sys.platform": sys.platform,
    "os.name": os.name,
    "platform.system()": platform.system(),
    "sys.implementation.name": sys.implementation.name,
}


@dataclass(frozen=True)
class Test:
    """A test function. `name`: FILE::CLASS::TEST without parameters."""

    name: str
    counted: bool
    """False where its own marks skip it or expect it to fail, whatever the solution is."""
    marked_parameters: bool
    """Some of its parameters have their own marks."""


@dataclass(frozen=True)
class Shape:
    """The tests that one or several files promise."""

    tests: tuple[Test, ...]
    imports: tuple[str, ...]
    """Modules that they name, dotted, without the solution's and their own."""
    patches: bool
    """Whether they patch attributes themselves."""
    fault: str = ""
    """Why a file is no Python."""


@lru_cache(256)
def shape_of(files: tuple[tuple[str, str], ...], own: tuple[str, ...]) -> Shape:
    """The shape of test files (name, text). `own`: names of further modules of the task. Never raises."""
    tests: list[Test] = []
    imports: dict[str, None] = {}
    local = {"solution", *own, *(name.removesuffix(".py") for name, _ in files)}
    patches = False
    for name, text in files:
        try:
            tree = ast.parse(text)
            tests += [] if name == "conftest.py" else _tests(tree, name)
            imports |= dict.fromkeys(module for module in _imported(tree) if module.partition(".")[0] not in local)
            patches = patches or any(_word(node) in _PATCHING for node in ast.walk(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
            return Shape((), (), False, f"{name}: {type(fault).__name__}: {fault}")
    return Shape(tuple(tests), tuple(imports), patches)


def _tests(tree: ast.Module, file: str) -> list[Test]:
    marks = [mark for node in tree.body for mark in _pytestmark(node)]
    found = {}
    for node in tree.body:
        for path, function, decorators in _functions(node, ()):
            found[path] = _test("::".join((file, *path)), [*marks, *decorators, *function.decorator_list])
    return list(found.values())


def _functions(
    node: ast.stmt, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.AsyncFunctionDef, list[ast.expr]]]:
    """The test functions that a statement surely defines, with the marks of their classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name.startswith("test") and not any(_called(mark).endswith("fixture") for mark in node.decorator_list):
            yield (*path, node.name), node, []
    elif isinstance(node, ast.ClassDef) and _is_test_class(node):
        marks = node.decorator_list + [mark for part in node.body for mark in _pytestmark(part)]
        for part in node.body:
            for name, function, inner in _functions(part, (*path, node.name)):
                yield name, function, [*marks, *inner]


def _is_test_class(node: ast.ClassDef) -> bool:
    defined = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    assigned = {_word(target) for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
    if "__test__" in assigned:
        return False
    if any(_called(base).endswith("TestCase") for base in node.bases):
        return True
    return node.name.startswith("Test") and not defined & {"__init__", "__new__"}


def _test(name: str, marks: list[ast.expr]) -> Test:
    counted = not any(_settles(mark) for mark in marks)
    parameters = any(isinstance(node, ast.keyword) and node.arg == "marks" for mark in marks for node in ast.walk(mark))
    return Test(name, counted, parameters)


def _settles(mark: ast.expr) -> bool:
    """Whether a decorator takes its test out of the count by itself."""
    name = _called(mark)
    args = mark.args if isinstance(mark, ast.Call) else []
    words = {word.arg: word.value for word in mark.keywords} if isinstance(mark, ast.Call) else {}
    condition = args[0] if args else words.get("condition")
    if name in (
        "pytest.mark.skip",
        "mark.skip",
        "unittest.skip",
        "skip",
        "unittest.expectedFailure",
        "expectedFailure",
    ):
        return True
    if name in ("pytest.mark.xfail", "mark.xfail"):
        return condition is None or _known(condition) is True
    if name in ("pytest.mark.skipif", "mark.skipif", "unittest.skipIf", "skipIf"):
        return condition is not None and _known(condition) is True
    if name in ("unittest.skipUnless", "skipUnless"):
        return condition is not None and _known(condition) is False
    return False


def _known(condition: ast.expr) -> bool | None:
    """A condition on the interpreter or the platform; None for any other, which a solution may influence."""
    if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
        try:
            condition = ast.parse(condition.value, mode="eval").body
        except (SyntaxError, ValueError):
            return None
    if isinstance(condition, ast.Constant):
        return bool(condition.value)
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        inner = _known(condition.operand)
        return None if inner is None else not inner
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
        return _compared(condition)
    if isinstance(condition, ast.Call) and ast.unparse(condition.func) == "sys.platform.startswith":
        return any(isinstance(arg, ast.Constant) and sys.platform.startswith(str(arg.value)) for arg in condition.args)
    return None


def _compared(node: ast.Compare) -> bool | None:
    fact, operator = _FACTS.get(ast.unparse(node.left)), type(node.ops[0])
    try:
        value = ast.literal_eval(node.comparators[0])
        if fact is None or type(fact) is not type(value):
            return None
        results = {ast.Lt: fact < value, ast.LtE: fact <= value, ast.Gt: fact > value, ast.GtE: fact >= value}
        return (results | {ast.Eq: fact == value, ast.NotEq: fact != value}).get(operator)
    except (ValueError, TypeError, SyntaxError):
        return None


def _pytestmark(node: ast.stmt) -> list[ast.expr]:
    if not isinstance(node, ast.Assign) or not any(_word(target) == "pytestmark" for target in node.targets):
        return []
    return list(node.value.elts) if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]


def _called(node: ast.expr) -> str:
    """The dotted name of a decorator, called or not."""
    node = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
