"""Rows of coding problems from files: JSON lists, JSON lines and tables, of one's own or embedded."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.code.cases import taken
from rlvr_exp.tasks.code.domain import content_of
from rlvr_exp.tasks.code.files import Row, once, rows_below
from rlvr_exp.tasks.completion import syntax_fault
from rlvr_exp.tasks.formats.fields import Fault
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem, PytestSuite
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, Tolerances, tolerances_of

KEYS = "text, solution and tests"
TESTS = 'a list of {"args": [...], "expected": ...}, or the text of a pytest file'


@dataclass(frozen=True)
class ProblemRow:
    """One problem."""

    id: str
    text: str
    entry_point: str
    """The function that answers it."""
    solution: str
    """The reference: a module that defines the function."""
    tests: PythonProblem | PytestProblem
    """What decides, and no prompt shows: calls, or a pytest file."""
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
    where: str = field(default="", compare=False)
    """Its file and line, where it has a line of its own."""


def load(path: Path) -> list[ProblemRow]:
    """Every row at or below a path, by file and line.

    Raises:
        InputError: nothing is there, any file, row or key is wrong, or an id stands twice.
    """
    remedy = f"point data.path at rows with {KEYS}, or at a set that data=code reads"
    nothing = InputProblem(str(path), "no problems here", allowed="a JSON list, JSON lines or tables", remedy=remedy)
    return once(rows_below(path, problem_of, nothing), path)


def problem_of(row: Row, split: str) -> ProblemRow:
    """The problem of a row. Raises InputError naming the key."""
    text, solution = row.text("text"), row.text("solution")
    if fault := syntax_fault(solution):
        raise InputError(InputProblem(f"{row.where}, solution", "no Python", f"line {fault[0]}: {fault[1]}"))
    suite = None if _has_calls(row) else _suite(row)
    name = row.text("entry_point", "") or taken(suite.tests if suite else "", solution)
    if not name.isidentifier():
        raise InputError(InputProblem(f"{row.where}, entry_point", "no name of a function", name[:60]))
    return ProblemRow(
        row.text("id", content_hash([text, solution])),
        text,
        name,
        solution,
        suite or PythonProblem(name, _cases(row, "tests"), **_tolerances(row)),
        _cases(row, "shown"),
        row.text("family", ProblemRow.family),
        row.real("difficulty", 0.0),
        split,
        _stages(row),
        _cases(row, "good_tests"),
        row.texts("wrong"),
        row.where,
    )


def content(row: ProblemRow) -> Mapping[str, Any]:
    """What a row says, in hashable form: the calls of public sets hold values that JSON lacks."""
    kept = {one.name: getattr(row, one.name) for one in fields(row) if one.compare and one.name != "tests"}
    return kept | {"tests": content_of(row.tests)}


def call_text(name: str, case: Case) -> str:
    """A call with its value, as Python that is true: `f(1, 'a') == [2]`."""
    return f"{name}({', '.join(map(repr, case.args))}) == {case.expected!r}"


def _has_calls(row: Row) -> bool:
    """Whether the tests are calls and no text. Raises InputError where there are none."""
    given = row.values.get("tests")
    if not given:
        raise InputError(InputProblem(f"{row.where}, tests", "a problem is judged by tests", "none", TESTS))
    return not (isinstance(given, str) or (isinstance(given, list) and all(isinstance(one, str) for one in given)))


def _suite(row: Row) -> PytestProblem:
    """The tests as `verifier=pytest` takes them from a row, with the solution as their reference."""
    try:
        return PytestSuite().read_problem({**row.values, "reference": row.text("solution")})
    except Fault as fault:
        raise _refused(row, fault, TESTS) from fault


def _tolerances(row: Row) -> Tolerances:
    """`atol` and `rtol` for the comparison of calls. Raises InputError."""
    try:
        return tolerances_of(row.values)
    except Fault as fault:
        raise _refused(row, fault) from fault


def _refused(row: Row, fault: Fault, allowed: str = "") -> InputError:
    key, _, what = str(fault).partition(": ")
    return InputError(InputProblem(f"{row.where}, {key}", what, allowed=allowed))


def _cases(row: Row, key: str) -> tuple[Case, ...]:
    """The calls under a key. Raises InputError."""
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
