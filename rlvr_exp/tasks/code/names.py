"""The function that a set means where it names none: a function that the tests call and the solution defines."""

import ast
from collections.abc import Iterable

from rlvr_exp.tasks.completion import tree, unified


def called(tests: Iterable[str], gold: str) -> str:
    """The first function or class of the solution that the tests call, in their order; empty where none does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in tree(gold).body if isinstance(node, kinds)}
    for test in tests:
        for node in ast.walk(tree(unified(test))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return ""


def taken(suite: str, gold: str) -> str:
    """Of the functions that a pytest file takes from `solution`, the one that the solution defines last, after its helpers; of
    none, the last function of the solution; empty where it has no function. Raises SyntaxError."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [node.name for node in tree(gold).body if isinstance(node, kinds)]
    wanted = {name for node in ast.walk(tree(suite)) for name in _from_solution(node)}
    return next((name for name in reversed(defined) if name in wanted), defined[-1] if defined else "")


def _from_solution(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.ImportFrom(module="solution"):
            return [alias.name for alias in node.names]
        case ast.Attribute(ast.Name("solution"), name):
            return [name]
    return []


def statements(program: str) -> int:
    """Number of statements in a program: a measure of difficulty for every set."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree(program)))
