"""Rows of a user's own: a prompt, and tests or cases that judge an answer; optionally a solution and a split.

`tests` are those of `verifier=pytest`: a pytest file, a program of asserts or a list of asserts; `cases` those of
`verifier=python_io`. Asserts on plain values serve as cases, too.
"""

from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.code.cases import NoCases, called, cases_of, problem_of, statements_of
from rlvr_exp.tasks.code.files import Row, split_of
from rlvr_exp.tasks.code.harness import undefined
from rlvr_exp.tasks.code.record import CodeRecord, CodeSet
from rlvr_exp.tasks.completion import tree, unified
from rlvr_exp.tasks.formats.domain import prompt_of
from rlvr_exp.tasks.formats.fields import Fault, Fields, optional_text, wrong
from rlvr_exp.tasks.formats.pytest_suite import PytestSuite
from rlvr_exp.tasks.formats.python_io import PythonIO, PythonProblem, tolerances_of

NAME = "rows"
ANY = frozenset({"tests", "cases"})
"""Keys of which a row has one at least."""
CONTENT = ("prompt", "tests", "cases", "entry_point", "solution")
NO_TESTS = "it has cases and no tests"


def of_problems(fields: Fields) -> bool:
    """Whether a row is one of `data=problems`, which calls a prompt a text."""
    return "text" in fields and "prompt" not in fields


def _read(row: Row) -> CodeRecord:
    try:
        return _record(row.values, split_of(row))
    except Fault as fault:
        raise InputError(InputProblem(row.where, str(fault))) from fault


def _record(fields: Fields, split: str) -> CodeRecord:
    gold, entry = unified(optional_text(fields, "solution") or ""), optional_text(fields, "entry_point") or ""
    tree(gold)
    if not ANY & fields.keys():
        raise Fault(f"tests or cases: missing; got {', '.join(map(str, fields))}")
    tests = PytestSuite().read_problem(fields) if "tests" in fields else None
    cases, why = (PythonIO().read_problem(fields), "") if "cases" in fields else _cases(fields, gold, entry)
    form, problem = (PytestSuite(), tests) if tests is not None else (PythonIO(), cases)
    return CodeRecord(
        _id(fields),
        optional_text(fields, "family") or NAME,
        split,
        prompt_of(fields, form, problem),
        gold or None,
        (),
        tests,
        cases,
        why,
        NO_TESTS,
        source=optional_text(fields, "source") or NAME,
        entry_point=entry,
    )


def _id(fields: Fields) -> str:
    """The row's own id, or one that follows from its content."""
    value = fields.get("id", fields.get("task_id"))
    if value is None:
        return f"{NAME}/{content_hash([fields.get(key) for key in CONTENT])[:8]}"
    if type(value) not in (str, int) or value == "":
        raise Fault(wrong("id" if "id" in fields else "task_id", fields, "a string or an integer"))
    return str(value)


def _cases(fields: Fields, gold: str, entry: str) -> tuple[PythonProblem | None, str]:
    """The tests as cases, where they are asserts on plain values."""
    given: Any = fields["tests"]
    texts = [given] if isinstance(given, str) else given
    try:
        entry = entry or called(texts, gold) or next(iter(sorted(undefined(texts))), "")
        return problem_of(entry, cases_of(statements_of(texts), entry), **tolerances_of(fields)), ""
    except NoCases as reason:
        return None, str(reason)


OWN_ROWS = CodeSet(NAME, _read, frozenset(), ())
