"""Which function a set means where it does not say: the one that the tests call and the solution defines."""

import ast
from collections.abc import Iterable

from rlvr_exp.tasks.completion import tree, unified


def called(tests: Iterable[str], gold: str) -> str:
    """The first function or class of the solution that the first test to call one calls; empty where none does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in tree(gold).body if isinstance(node, kinds)}
    for test in tests:
        for node in ast.walk(tree(unified(test))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return ""


def statements(program: str) -> int:
    """How many statements a program has: the measure of difficulty that every set has."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree(program)))
