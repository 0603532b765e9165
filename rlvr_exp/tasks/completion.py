"""Python inside a completion: fences, chatter around code, and faults of text that is no Python. Never runs or repairs
it.

Shared by the domains whose answers are Python. A completion cut off inside its code stays a fault: only lines outside
any function are dropped.
"""

import ast
import re
import warnings
from collections.abc import Callable, Sequence

from rlvr_exp.tasks.base import Candidate

FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
CODE_START = re.compile(r"(?:def|class|import)\s+\w|from\s+[\w.]+\s+import\b|@\w|[A-Za-z_]\w*\s*=[^=]")
_MARK, _BARE = re.compile(r"^[ \t]*```[^\n`]*$"), re.compile(r"^[ \t]*```[ \t]*$")
_MOST_MARKS = 24
"""Limit of fence marks, counted from the end: pairs of them are tried, so their number is bounded."""


def syntax_fault(source: str) -> tuple[int, str] | None:
    """The first line that is no Python and what is wrong there; None for a valid program."""
    try:
        tree(source)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, f"too deep or not text: {error or type(error).__name__}"
    return None


def tree(source: str) -> ast.Module:
    """The program as a syntax tree. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
    with warnings.catch_warnings():
        # A candidate's odd escapes must not raise a warning of this program.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def unified(text: str) -> str:
    """The text with one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def dedent(block: str) -> str:
    """Undo an indentation that all lines share, as in a fence within a list."""
    lines = block.split("\n")
    filled = [line for line in lines if line.strip()]
    margin = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return "\n".join(line[margin:] for line in lines)


def cut_tail(lines: list[str]) -> tuple[list[str], tuple[int, str] | None]:
    """Drop the tail from an unindented line that is no Python, repeatedly: words after the code."""
    fault = syntax_fault("\n".join(lines))
    while fault is not None and 1 < fault[0] <= len(lines) and not _own(lines[fault[0] - 1]):
        lines = lines[: fault[0] - 1]
        fault = syntax_fault("\n".join(lines))
    return lines, fault


def _own(line: str) -> bool:
    """Whether a faulty line belongs to the program and not to the words after it."""
    return line[:1] in (" ", "\t") or CODE_START.match(line) is not None


def whole_program(completion: str, wanted: str = "") -> Candidate:
    """The complete program in a completion: nothing is cut from code, not even calls at its end.

    A completion that is Python is taken unchanged. Else the last fenced block that defines what is wanted, the last that
    defines a function or class, or the last that is Python; a block may itself hold fence marks, as in a docstring. Without
    any, the text from its first line of code on, without the words after it.

    Args:
        wanted: the name of the function or class that is asked for, where it is known.
    """
    text = unified(completion)
    if not text.strip():
        return Candidate(None, "no program in the answer")
    if syntax_fault(text) is None:
        return Candidate(text)
    blocks = _blocks(text.split("\n"))
    if blocks:
        defining = [block for block in blocks if _defines(block)]
        named = [block for block in defining if wanted and _defines(block, wanted)]
        return Candidate((named or defining or blocks)[-1])
    return _unfenced(text)


def fenced(program: str, language: str) -> str:
    """A program as a completion that is one code block."""
    return f"```{language}\n{program.strip(chr(10))}\n```"


def block_closes(text: str, accepts: Callable[[str], bool]) -> bool:
    """Whether a completion so far ends with the fence that closes a block that is accepted; nothing ends inside thoughts."""
    lines = unified(text).rstrip(" \t\n").split("\n")
    if lines[-1].strip() != "```" or ("<think>" in text and "</think>" not in text):
        return False
    marks = [number for number, line in enumerate(lines[:-1]) if _MARK.match(line)][-_MOST_MARKS:]
    return any(accepts(dedent("\n".join(lines[mark + 1 : -1])) + "\n") for mark in marks)


def defines(block: str) -> bool:
    """Whether a text is Python with a function or a class."""
    return syntax_fault(block) is None and _defines(block)


def _blocks(lines: Sequence[str]) -> list[str]:
    """Every fenced block that is Python, in order: from an opening mark to the nearest bare mark that completes it. A mark
    with a language only opens; one that opens no Python takes its closing mark with it, which opens nothing then."""
    marks = [number for number, line in enumerate(lines) if _MARK.match(line)][-_MOST_MARKS:]
    found, at = [], 0
    while at < len(marks):
        opening, at = marks[at], at + 1
        bare = [place for place in range(at, len(marks)) if _BARE.match(lines[marks[place]])]
        for closing in (*bare, len(marks)):
            end = marks[closing] if closing < len(marks) else len(lines)
            block = dedent("\n".join(lines[opening + 1 : end])) + "\n"
            if block.strip() and syntax_fault(block) is None:
                found.append(block)
                at = closing + 1
                break
        else:
            at += bare[:1] == [at]
    return found


def _defines(block: str, name: str = "") -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) and name in ("", node.name) for node in tree(block).body)


def _unfenced(text: str) -> Candidate:
    match = FENCE.search(text)
    block, offset = (dedent(match[1]), text.count("\n", 0, match.start(1))) if match else (text, 0)
    lines = block.split("\n")
    start = next((number for number, line in enumerate(lines) if CODE_START.match(line)), 0)
    kept, fault = cut_tail(lines[start:])
    if fault is not None:
        return Candidate(None, f"line {offset + start + fault[0]}: {fault[1]}")
    return Candidate("\n".join(kept).rstrip("\n") + "\n")
