"""The program inside a completion. Owns fences, chatter and headers around it; never runs or repairs it.

A completion cut off inside its function stays a fault: only lines that stand outside any function are dropped.
"""

import ast
import re
import warnings

from rlvr_exp.tasks.base import Candidate

FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
CODE_START = re.compile(r"(?:def|class|import)\s+\w|from\s+[\w.]+\s+import\b|@\w|[A-Za-z_]\w*\s*=[^=]")


def extract(completion: str, entry_point: str) -> Candidate:
    """The program that defines `entry_point` at top level, or the fault with its line in the completion."""
    text = completion.replace("\r\n", "\n").replace("\r", "\n")
    block, offset = _choose(text, entry_point)
    return _program(block, offset, entry_point)


def syntax_fault(source: str) -> tuple[int, str] | None:
    """The first line that is no Python and what is wrong there; None for a valid program."""
    try:
        _tree(source)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, f"too deep or not text: {error or type(error).__name__}"
    return None


def _tree(source: str) -> ast.Module:
    with warnings.catch_warnings():
        # A candidate's odd escapes are its own matter, not a warning of this program.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _choose(text: str, entry_point: str) -> tuple[str, int]:
    """The last fence that defines the function, else the text outside fences that does, else the first fence."""
    fences = [(match[1], text.count("\n", 0, match.start(1))) for match in FENCE.finditer(text)]
    defining = [fence for fence in fences if _defines(fence[0], entry_point)]
    if defining or not fences:
        block, offset = defining[-1] if defining else (text, 0)
    else:
        outside = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
        block, offset = (outside, 0) if _defines(outside, entry_point) else fences[0]
    return _dedent(block), offset


def _defines(text: str, entry_point: str) -> bool:
    return re.search(rf"^[ \t]*def\s+{re.escape(entry_point)}\s*\(", text, re.MULTILINE) is not None


def _dedent(block: str) -> str:
    """Undo an indentation that all lines share, as in a fence within a list."""
    lines = block.split("\n")
    filled = [line for line in lines if line.strip()]
    margin = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return "\n".join(line[margin:] for line in lines)


def _program(block: str, offset: int, entry_point: str) -> Candidate:
    """The program from the first line of code on, or failing that (chatter can look like code) from the function on."""
    lines = block.split("\n")
    starts = [n for n, line in enumerate(lines) if CODE_START.match(line)]
    starts = starts[:1] + [n for n in starts if _defines(lines[n], entry_point)][:1] or [0]
    reason = ""
    for start in starts:
        kept, fault = _cut_tail(lines[start:])
        if fault is None:
            return _trimmed(kept, entry_point)
        reason = f"line {offset + start + fault[0]}: {fault[1]}"
    return Candidate(None, reason)


def _cut_tail(lines: list[str]) -> tuple[list[str], tuple[int, str] | None]:
    """Drop the tail from an unindented line that is no Python, as often as that is the fault: words after the code."""
    fault = syntax_fault("\n".join(lines))
    while fault is not None and 1 < fault[0] <= len(lines) and not _own(lines[fault[0] - 1]):
        lines = lines[: fault[0] - 1]
        fault = syntax_fault("\n".join(lines))
    return lines, fault


def _own(line: str) -> bool:
    """Whether a faulty line belongs to the program and not to the words after it."""
    return line[:1] in (" ", "\t") or CODE_START.match(line) is not None


def _trimmed(lines: list[str], entry_point: str) -> Candidate:
    """Cut loose words after the program, such as `Done` or a call of it: expressions at top level that bind nothing."""
    body = _tree("\n".join(lines)).body
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in body):
        return Candidate(None, f"no function {entry_point} at top level")
    last = [node for node in body if not isinstance(node, ast.Expr)][-1]
    return Candidate("\n".join(lines[: last.end_lineno]) + "\n")
