"""What a test writer is shown and learns: critiques of a solver's outputs, and tests.

A critique of an output that fits the problem is `ok`; else it is `wrong: ` and the words of the problem that the output misses.
Outputs that do not fit are those of another problem of the family, in this problem's names.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain

from rlvr_exp.core.seeds import uniform
from rlvr_exp.tasks.completion import fenced_blocks, tree, without_thoughts
from rlvr_exp.tasks.mutants import chosen
from rlvr_exp.tasks.problems.rows import ProblemRow, call_text

TESTS = "tests"
"""The stage at which tests are asked for."""
FITS, MISSES = "ok", "wrong: "
LAST_CODE, LAST_TESTS = "last code", "last tests"
"""Headings of what was given before, where it is told what was wrong with it."""
FAILED = "failed tests"
_FIRST_WORD = re.compile(r"(?:[^\w]|_)*(?:\d+[.)]\s+(?:[^\w]|_)*)?([^\W_]+(?:['\u2019]\w+)?)")


def critique_of(stage: str) -> str:
    """The name of the stage at which a critique of another is asked for."""
    return f"{stage}?"


def good_tests(row: ProblemRow) -> str | None:
    """The tests that a good tester writes, a line each; None where none are known."""
    return "\n".join(call_text(row.entry_point, case) for case in row.good_tests) or None


def approves(text: str) -> bool | None:
    """Whether a critique says that the output fits, by its first word; None: it says neither.

    Case, punctuation and Markdown do not count, nor do thoughts before it and a fence around it.
    """
    said = without_thoughts(text)
    blocks = fenced_blocks(said)
    first = min(blocks, key=lambda block: block.start, default=None)
    if first and not any(line.strip() for line in said.split("\n")[: first.start - 1]):
        said = first.text
    word = _FIRST_WORD.match(said)
    return {"ok": True, "wrong": False}.get(word[1].lower()) if word else None


def feedback(heading: str, text: str, faults: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A text that was given before, and lines by what is wrong with them, each under its heading."""
    return {heading: text.strip("\n"), **{name: "\n".join(lines) for name, lines in faults.items() if lines}}


def attempt(row: ProblemRow) -> str:
    """A program that a tester is shown: a wrong one of the data, else the reference or a mutant of it, by the row's id."""
    if row.wrong:
        return row.wrong[0].strip("\n")
    mutants = chosen(row.solution, 1, row.id) if uniform("attempt", row.id) < 0.5 else []
    return (mutants[0].code if mutants else row.solution).strip("\n")


def sibling(row: ProblemRow, family: Sequence[ProblemRow]) -> ProblemRow | None:
    """Another problem of the family with other words: the first from a place that the row's id draws; None where there is none."""
    first = int(uniform("sibling", row.id) * len(family))
    turned = chain(family[first:], family[:first])
    return next((one for one in turned if one.id != row.id and missed(row, one)), None)


def missed(row: ProblemRow, other: ProblemRow) -> str:
    """The words of a problem that another of its family, in the same names, does not have, with the word after them."""
    own, its = row.text.split(), in_names_of(row, other, other.text).split()
    parts = SequenceMatcher(None, own, its, autojunk=False).get_opcodes()
    changed = [(first, last) for kind, first, last, _, _ in parts if kind != "equal"]
    return " ".join(own[changed[0][0] : changed[-1][1] + 1]).rstrip(".,") if changed else ""


def in_names_of(row: ProblemRow, other: ProblemRow, text: str) -> str:
    """A text about another problem with this one's names of the function and its arguments."""
    names: Mapping[str, str] = dict(zip(names_of(other), names_of(row), strict=False))
    if not names:
        return text
    return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda match: names[match[1]], text)


def names_of(row: ProblemRow) -> list[str]:
    """The function and its arguments."""
    functions = [node for node in tree(row.solution).body if isinstance(node, ast.FunctionDef)]
    found = next((node for node in functions if node.name == row.entry_point), None)
    return [] if found is None else [found.name, *(one.arg for one in found.args.args)]
