"""The function that a set means where it names none: the function that the tests call and the solution defines."""

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


def statements(program: str) -> int:
    """Number of statements in a program: a measure of difficulty for every set."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree(program)))
