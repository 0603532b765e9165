"""The names that a Python problem's tests take from a solution."""

import ast

from rlvr_exp.tasks.completion import tree
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.suite.uses import uses_of

MODULE = "solution"


def wanted_names(problem: PythonProblem | PytestProblem) -> tuple[str, ...]:
    """The names in order of first use: the entry point, or what the suite imports from `solution` or reads from it. Of a suite that
    imports `*`, also what it reads and nowhere binds, sorted."""
    if isinstance(problem, PythonProblem):
        return (problem.entry_point,)
    found: dict[str, None] = {}
    for text in (problem.tests, *(text for name, text in problem.files if name.endswith(".py"))):
        nodes = list(ast.walk(_parsed(text)))
        for node in nodes:
            found.update(dict.fromkeys(_names_in(node)))
        if any(_imports_all(node) for node in nodes):
            found.update(dict.fromkeys(uses_of((text,)).stars))
    return tuple(found)


def _imports_all(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == MODULE and any(one.name == "*" for one in node.names)


def _parsed(text: str) -> ast.AST:
    try:
        return tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])  # no Python takes no name; the verifier gives no verdict, with the reason


def _names_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.module == MODULE:
        return [alias.name for alias in node.names if alias.name != "*"]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == MODULE:
        return [node.attr]
    return []
