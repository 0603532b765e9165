"""The program inside an ARC answer: the function that a puzzle asks for, without words and calls around it."""

import ast

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import CODE_START, syntax_fault, tree, whole_program


def extract(completion: str, entry_point: str) -> Candidate:
    """The program that defines `entry_point` at top level, or the fault with its line in the answer."""
    found = whole_program(completion, entry_point)
    if found.text is None:
        return found if completion.strip() else _without(entry_point)
    lines = found.text.split("\n")
    first = next((number for number, line in enumerate(lines) if CODE_START.match(line)), 0)
    kept = lines[first:] if syntax_fault("\n".join(lines[first:])) is None else lines
    body = tree("\n".join(kept)).body
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body):
        return _without(entry_point)
    # Loose words after the program, such as `Done` or a call of it, bind nothing.
    last = [node for node in body if not isinstance(node, ast.Expr)][-1]
    return Candidate("\n".join(kept[: last.end_lineno]) + "\n")


def _without(entry_point: str) -> Candidate:
    return Candidate(None, f"no function {entry_point} at top level")
