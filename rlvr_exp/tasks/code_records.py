"""Records of sets of programs with tests: the prompt's inputs, the tests, a right program and wrong programs of one task.

Rows of a user's own are a set, too: a prompt, and tests or cases that judge an answer; optionally a solution and a split. `tests` are
those of `verifier=pytest`: a pytest file, a program of asserts or a list of asserts. `cases` are those of `verifier=python_io`.
Asserts on plain values serve as cases, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.cases import NoCases, called, cases_of, problem_of, statements_of
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.fields import Fault, Fields, optional_text, wrong
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem, PytestSuite
from rlvr_exp.tasks.formats.python_io import PythonIO, PythonProblem, tolerances_of
from rlvr_exp.tasks.formats.rows import prompt_of
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row, split_of
from rlvr_exp.tasks.suites import undefined

JUDGES = ("pytest", "python_io")
"""The two forms of a problem: a test file, or cases whose expected values never reach the candidate."""
EITHER = "python_tests"
"""Cases where a task has them, else its test file."""
STYLES = ("descriptive", "lazy")
"""Styles of an instruction: everything in words, or as briefly as a person asks."""

DRAWN = ""
"""The split of a task that no set and no row places."""


@dataclass(frozen=True)
class CodeRecord:
    """One task of a set."""

    id: str
    family: str
    split: str
    inputs: CodeInputs | str
    """The data of the prompt, or the prompt itself."""
    gold: str | None
    """The set's own solution: a complete module."""
    negatives: tuple[str, ...]
    """Complete modules of the set that must not pass: the buggy program, the program before its edit."""
    tests: PytestProblem | None
    cases: PythonProblem | None = None
    """The tests as cases, where the set has them as plain data."""
    why_no_cases: str = "its tests are a program, not arguments and values"
    why_no_tests: str = ""
    script: str = ""
    """Of an edit: its tests as the set has them, a script that the edited program precedes; empty: there is none."""
    lazy: CodeInputs | None = None
    """The inputs with the instruction in fewer words, where the set has one."""
    style: str = ""
    """The instruction's style, of a set that has two: descriptive or lazy."""
    source: str = ""
    """The set that it comes from, where that is not the first part of its family."""
    drawn: str = ""
    """The split where splits are drawn, if the ids of a set decide it: its own, or those of a set with the same tasks."""
    entry_point: str = ""
    """The function that is asked for, where the set says it."""


@dataclass(frozen=True)
class CodeSet:
    """A set with a row for each task, recognized by its keys."""

    name: str
    read: Callable[[Row], CodeRecord]
    keys: frozenset[str]
    """Every row has them."""
    files: tuple[str, ...]
    """Names of its files, the one first that is read. Empty: all files are read."""
    without: frozenset[str] = frozenset()
    """No row has one of these."""


def in_style(record: CodeRecord, wanted: str) -> tuple[CodeRecord, ...]:
    """The record with the instruction in that style, or for `both` one record for each style, with different ids and
    families.

    Only the descriptive record keeps the set's id and family. A record without a lazy instruction stays unchanged.
    """
    if record.lazy is None or wanted == STYLES[0]:
        return (record,)
    parts = {"descriptive": record.inputs, "lazy": record.lazy}
    styles = STYLES if wanted == "both" else (wanted,)
    return tuple(_in_one_style(record, style, parts[style]) for style in styles)


def _in_one_style(record: CodeRecord, style: str, inputs: CodeInputs | str) -> CodeRecord:
    name, kind = record.family.split("/", 1)
    return replace(record, id=f"{record.id}/{style}", family=f"{name}/{style}/{kind}", inputs=inputs, style=style)


NAME = "rows"
ANY = frozenset({"tests", "cases"})
"""A row has at least one of these keys."""
CONTENT = ("prompt", "tests", "cases", "entry_point", "solution")
NO_TESTS = "it has cases and no tests"


def of_problems(fields: Fields) -> bool:
    """Whether a row is one of `data=problems`, whose prompt has the key `text`."""
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
    """The tests as cases, if they are asserts on plain values."""
    given: Any = fields["tests"]
    texts = [given] if isinstance(given, str) else given
    try:
        entry = entry or called(texts, gold) or next(iter(sorted(undefined(texts))), "")
        return problem_of(entry, cases_of(statements_of(texts), entry), **tolerances_of(fields)), ""
    except NoCases as reason:
        return None, str(reason)


OWN_ROWS = CodeSet(NAME, _read, frozenset(), ())
