"""Rows of coding problems from files: JSON lists, JSON lines and tables, of one's own or embedded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.code.files import Row, rows_below
from rlvr_exp.tasks.completion import syntax_fault
from rlvr_exp.tasks.formats.python_io import Case

KEYS = "text, entry_point, solution and tests"


@dataclass(frozen=True)
class ProblemRow:
    """One problem."""

    id: str
    text: str
    entry_point: str
    """The function that answers it."""
    solution: str
    """The reference: a module that defines the function."""
    tests: tuple[Case, ...]
    """Calls that decide, and that no prompt shows."""
    shown: tuple[Case, ...] = ()
    """Calls in the prompt."""
    family: str = "problems"
    difficulty: float = 0.0
    split: str = ""
    """Empty where nothing says it."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """A good output of stages of reasoning, by name, where it is known."""
    good_tests: tuple[Case, ...] = ()
    """Calls that a good tester writes."""
    wrong: tuple[str, ...] = ()
    """Plausible wrong solutions, to measure tests with."""


def load(path: Path) -> list[ProblemRow]:
    """Every row at or below a path, by file and line.

    Raises:
        InputError: nothing is there, or any file, row or key is wrong.
    """
    remedy = f"point data.path at rows with {KEYS}"
    nothing = InputProblem(str(path), "no problems here", allowed="a JSON list, JSON lines or tables", remedy=remedy)
    return rows_below(path, problem_of, nothing)


def problem_of(row: Row, split: str) -> ProblemRow:
    """The problem of a row. Raises InputError naming the key."""
    text, name, solution = row.text("text"), row.text("entry_point"), row.text("solution")
    if fault := syntax_fault(solution):
        raise InputError(InputProblem(f"{row.where}, solution", "no Python", f"line {fault[0]}: {fault[1]}"))
    if not name.isidentifier():
        raise InputError(InputProblem(f"{row.where}, entry_point", "no name of a function", name[:60]))
    tests = _cases(row, "tests")
    if not tests:
        what, allowed = "a problem is judged by calls", 'a list of {"args": [...], "expected": ...}'
        raise InputError(InputProblem(f"{row.where}, tests", what, "none", allowed))
    return ProblemRow(
        row.text("id", content_hash([text, solution])),
        text,
        name,
        solution,
        tests,
        _cases(row, "shown"),
        row.text("family", ProblemRow.family),
        row.real("difficulty", 0.0),
        split,
        _stages(row),
        _cases(row, "good_tests"),
        row.texts("wrong"),
    )


def call_text(name: str, case: Case) -> str:
    """A call with its value, as Python that is true: `f(1, 'a') == [2]`."""
    return f"{name}({', '.join(map(repr, case.args))}) == {case.expected!r}"


def _cases(row: Row, key: str) -> tuple[Case, ...]:
    given = row.values.get(key) or []
    wanted = {"args", "expected"}
    if not isinstance(given, list) or not all(isinstance(one, dict) and wanted <= one.keys() for one in given):
        allowed = 'a list of {"args": [...], "expected": ...}'
        raise InputError(InputProblem(f"{row.where}, {key}", "no calls", repr(given)[:60], allowed))
    for place, one in enumerate(given):
        if not isinstance(one["args"], list):
            where = f"{row.where}, {key}[{place}].args"
            raise InputError(InputProblem(where, "no arguments", repr(one["args"])[:60], "a list"))
    return tuple(Case(tuple(one["args"]), one["expected"]) for one in given)


def _stages(row: Row) -> dict[str, str]:
    given: Any = row.values.get("stages") or {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise InputError(InputProblem(f"{row.where}, stages", "no outputs", repr(given)[:60], "{STAGE: TEXT}"))
    return dict(given)
