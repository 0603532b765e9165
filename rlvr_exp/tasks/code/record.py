"""A public set of programs, and one of its tasks, once read: its prompt's inputs, its tests, a right program and wrong programs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

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
    """What its prompt is worded from, or the prompt itself."""
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
    """Names of its files, the one first that is read."""
    without: frozenset[str] = frozenset()
    """No row has one of these."""


def in_style(record: CodeRecord, wanted: str) -> tuple[CodeRecord, ...]:
    """The record with the instruction in that style, or `both`: a record for each, with ids and families of their own.

    The descriptive one alone keeps the set's own id and family. A record without a lazy instruction is what it is.
    """
    if record.lazy is None or wanted == STYLES[0]:
        return (record,)
    parts = {"descriptive": record.inputs, "lazy": record.lazy}
    styles = STYLES if wanted == "both" else (wanted,)
    return tuple(_in_one_style(record, style, parts[style]) for style in styles)


def _in_one_style(record: CodeRecord, style: str, inputs: CodeInputs | str) -> CodeRecord:
    name, kind = record.family.split("/", 1)
    return replace(record, id=f"{record.id}/{style}", family=f"{name}/{style}/{kind}", inputs=inputs, style=style)
