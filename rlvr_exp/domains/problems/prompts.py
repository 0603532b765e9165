"""What the roles of a problem are shown and learn: the prompts of a solver at each stage of reasoning, and the prompts, critiques
and tests of a tester.

Prompts in style `bare` are for small models trained here: the problem, the shown calls, earlier outputs under their names, and
the name of the stage that is asked for. `instruct` says the same in words.

A critique of an output that fits the problem is `ok`; else it is `wrong: ` and the words of the problem that the output misses.
Outputs that do not fit are those of another problem of the family, in this problem's names.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain

from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.rows import ProblemRow, call_text
from rlvr_exp.tasks.completion import fenced, fenced_blocks, without_thoughts
from rlvr_exp.tasks.mutants import chosen
from rlvr_exp.tasks.python_syntax import tree

TESTS_IN_WORDS = (
    "Write tests of the function, a line each: a call with literal arguments and the value that it has to return, such as `f(2) == 4`."
    " Good tests fail where a program is wrong."
)


def write(row: ProblemRow, stage: str, options: ReasoningStage, chain: Mapping[str, str], style: str) -> str:
    """The prompt of a solver's stage. `chain`: the earlier outputs that it is shown, by stage."""
    if style == "bare":
        return _bare(row, stage, chain)
    answer = "Answer with one Python code block." if options.form == "code" else "Answer with nothing else."
    purpose = f"Next is the {stage}: {options.purpose.strip()}. " if options.purpose else ""
    return f"{_in_words(row, chain)}{purpose}{options.solver.strip()} {answer}\n"


def write_tester(
    row: ProblemRow, stage: str, stages: Mapping[str, ReasoningStage], about: Mapping[str, str], style: str
) -> str:
    """The prompt for a critique of an output, or for tests. `about`: the output, by its stage."""
    if style == "bare":
        return _bare(row, stage, about)
    asked = TESTS_IN_WORDS if stage == TESTS else " ".join(stages[name].tester.strip() for name in about)
    return f"{_in_words(row, about)}{asked} Answer with nothing else.\n"


def _bare(row: ProblemRow, stage: str, chain: Mapping[str, str]) -> str:
    earlier = [line for name, text in chain.items() for line in (f"[{name}]", text.strip("\n"))]
    return "\n".join([row.text.strip("\n"), *_calls(row), *earlier, f"[{stage}]", ""])


def _in_words(row: ProblemRow, chain: Mapping[str, str]) -> str:
    calls = "\n".join(_calls(row))
    shown = f"Examples:\n\n{fenced(calls, 'python')}\n\n" if calls else ""
    earlier = "".join(f"## {name}\n\n{text.strip(chr(10))}\n\n" for name, text in chain.items())
    return f"{row.text.strip(chr(10))}\n\nThe function is `{row.entry_point}`.\n\n{shown}{earlier}"


def _calls(row: ProblemRow) -> list[str]:
    return [call_text(row.entry_point, case) for case in row.shown]


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
