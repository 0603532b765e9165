"""The program inside a completion. Owns fences, chatter and headers around it; never runs or repairs it.

A completion cut off inside its function stays a fault: only lines outside any function are dropped.
"""

import ast
import re

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import CODE_START, FENCE, cut_tail, dedent, tree, unified


def extract(completion: str, entry_point: str) -> Candidate:
    """The program that defines `entry_point` at top level, or the fault with its line in the completion."""
    text = unified(completion)
    block, offset = _choose(text, entry_point)
    return _program(block, offset, entry_point)


def _choose(text: str, entry_point: str) -> tuple[str, int]:
    """The last fence that defines the function, else the text outside fences that does, else the first fence."""
    fences = [(match[1], text.count("\n", 0, match.start(1))) for match in FENCE.finditer(text)]
    defining = [fence for fence in fences if _defines(fence[0], entry_point)]
    if defining or not fences:
        block, offset = defining[-1] if defining else (text, 0)
    else:
        outside = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
        block, offset = (outside, 0) if _defines(outside, entry_point) else fences[0]
    return dedent(block), offset


def _defines(text: str, entry_point: str) -> bool:
    return re.search(rf"^[ \t]*def\s+{re.escape(entry_point)}\s*\(", text, re.MULTILINE) is not None


def _program(block: str, offset: int, entry_point: str) -> Candidate:
    """The program from the first line of code on, or failing that (chatter can look like code) from the function on."""
    lines = block.split("\n")
    starts = [n for n, line in enumerate(lines) if CODE_START.match(line)]
    starts = starts[:1] + [n for n in starts if _defines(lines[n], entry_point)][:1] or [0]
    reason = ""
    for start in starts:
        kept, fault = cut_tail(lines[start:])
        if fault is None:
            return _trimmed(kept, entry_point)
        reason = f"line {offset + start + fault[0]}: {fault[1]}"
    return Candidate(None, reason)


def _trimmed(lines: list[str], entry_point: str) -> Candidate:
    """Cut loose words after the program, such as `Done` or a call of it: expressions at top level that bind nothing."""
    body = tree("\n".join(lines)).body
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body):
        return Candidate(None, f"no function {entry_point} at top level")
    last = [node for node in body if not isinstance(node, ast.Expr)][-1]
    return Candidate("\n".join(lines[: last.end_lineno]) + "\n")
