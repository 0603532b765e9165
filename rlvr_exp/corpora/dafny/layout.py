"""From a family's short notation to Dafny text, with and without annotations.

The notation is Dafny without braces: what is indented under `while`, `if`, `else` or `forall` is its block. A line that
begins with `@` is an annotation that the proof needs, a line with `~` an annotation beyond its needs; a blank after the
mark turns it into a clause of the `while` above (`invariant` where it names no other), otherwise it is a statement.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Literal

Mark = Literal["", "@", "~"]
_OPENS = re.compile(r"(while|if|else|forall)\b")


@dataclass(frozen=True)
class BodyLine:
    """One line of a body. `mark`: its part in the proof; empty for code."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True)
class _Row:
    depth: int
    text: str


def lay(notation: str) -> tuple[BodyLine, ...]:
    """The lines between a body's braces.

    Raises:
        ValueError: a line deeper than its block.
    """
    rows = [_row(line) for line in dedent(notation).splitlines() if line.strip()]
    lines, end = _block(rows, 0, 0)
    if end != len(rows):
        raise ValueError(f"line {rows[end].text!r} is indented under nothing")
    return tuple(lines)


def body(lines: Sequence[BodyLine], marks: Collection[str] = ("", "@", "~")) -> str:
    """The body with its braces, from the lines with these marks alone."""
    return "\n".join(["{", *(line.text for line in lines if line.mark in marks), "}"])


def _row(line: str) -> _Row:
    text = line.strip()
    return _Row((len(line) - len(line.lstrip())) // 2, text)


def _block(rows: Sequence[_Row], at: int, depth: int) -> tuple[list[BodyLine], int]:
    lines: list[BodyLine] = []
    pad = "  " * (depth + 1)
    while at < len(rows) and rows[at].depth == depth:
        text = rows[at].text
        mark: Mark = text[0] if text[0] in "@~" else ""  # type: ignore[assignment]
        at += 1
        if mark:
            lines.append(BodyLine(pad + text[1:], mark))
        elif not _OPENS.match(text):
            lines.append(BodyLine(pad + text))
        else:
            clauses, at = _clauses(rows, at, depth)
            lines += _opened(lines, text, pad, clauses)
            inside, at = _block(rows, at, depth + 1)
            lines += [*inside, BodyLine(pad + "}")]
    return lines, at


def _clauses(rows: Sequence[_Row], at: int, depth: int) -> tuple[list[BodyLine], int]:
    found: list[BodyLine] = []
    while at < len(rows) and rows[at].depth == depth and rows[at].text[:2] in ("@ ", "~ "):
        mark, text = rows[at].text[0], rows[at].text[2:]
        word = "" if re.match(r"(decreases|modifies)\b", text) else "invariant "
        found.append(BodyLine("  " * (depth + 2) + word + text, mark))  # type: ignore[arg-type]
        at += 1
    return found, at


def _opened(lines: list[BodyLine], text: str, pad: str, clauses: Sequence[BodyLine]) -> list[BodyLine]:
    """The lines that open a block; an `else` joins the brace that closes the `if`."""
    if text.startswith("while"):
        return [BodyLine(pad + text), *clauses, BodyLine(pad + "{")]
    if text.startswith("else"):
        lines.pop()
        return [BodyLine(f"{pad}}} {text} {{")]
    return [BodyLine(f"{pad}{text} {{")]
