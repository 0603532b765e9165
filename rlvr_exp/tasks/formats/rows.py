"""Rows of a file of candidates: one JSON object a line, read into (id, problem, candidate) by its format.

Owns the list of formats. The result is always a Row, or a Malformed with the key and its allowed values. Keys that a
format does not name are ignored, since data sets have keys of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.core.domains import domains, load
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fault, Fields, RowId, identity_of, object_of, optional_text
from rlvr_exp.tasks.formats.pytest_suite import PytestSuite
from rlvr_exp.tasks.formats.python_io import PythonIO

_OF_DOMAINS = {name: load(path)() for one in domains().values() for name, path in one.formats.items()}
FORMATS: Mapping[str, Format] = {**_OF_DOMAINS, **{one.name: one for one in (PythonIO(), PytestSuite())}}
"""By name; a row without a named format has the first of these whose keys it has."""


@dataclass(frozen=True)
class CandidateRow:
    """One candidate to judge."""

    id: RowId
    problem: Any
    candidate: Candidate


@dataclass(frozen=True)
class Malformed:
    """A line that cannot be judged."""

    id: RowId
    """The row's id where it could be read, else None."""
    reason: str


def format_of(problem: Any) -> Format | None:
    """The format of a problem; None for a kind of a user's own."""
    return next((one for one in FORMATS.values() if isinstance(problem, one.problem)), None)


def as_program(task: Task) -> tuple[Task, Candidate] | None:
    """The task as one that a program answers and tests judge, and its reference program; None of a task that is no such one."""
    form = format_of(task.problem)
    found = None if form is None else form.as_program(task.problem)
    return None if found is None else (replace(task, problem=found[0]), Candidate(found[1]))


def read_row(line: bytes, name: str) -> CandidateRow | Malformed:
    """One line of a file; `name` is one of FORMATS. Never raises for the content of the line."""
    identity: RowId = None
    try:
        fields = object_of(line)
        identity = identity_of(fields)
        return CandidateRow(identity, FORMATS[name].read_problem(fields), FORMATS[name].read_candidate(fields))
    except Fault as fault:
        return Malformed(identity, str(fault))


def prompt_of(fields: Fields, form: Format, problem: Any) -> str:
    """The prompt of a row. Raises Fault."""
    given = optional_text(fields, "prompt")
    return form.prompt(problem) if given is None else given.removesuffix("\n") + "\n"


class RowDomain(Domain):
    """The domain of rows in one format, by its name."""

    def __init__(self, name: str):
        self.name = name
        self._format = FORMATS[name]

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return {}

    def task(self, fields: Fields) -> Task:
        """The task of a row. Raises Fault."""
        problem = self._format.read_problem(fields)
        return Task(str(fields["id"]), self.name, 0.0, prompt_of(fields, self._format, problem), problem)

    def task_prompt(self, task: Task) -> str:
        return task.inputs

    def retry_prompt(self, task: Task, previous: str, feedback: str) -> str:
        text = self.parse(previous, task).text
        explained = feedback if text is None else self._format.explained(feedback, text)
        return super().retry_prompt(task, previous, explained)

    def hides(self, task: Task, case: int | None) -> bool:
        """Nothing: rows are to be solved, and no policy learns from them."""
        return False

    def parse(self, completion: str, task: Task) -> Candidate:
        return self._format.parse(completion, task.problem)


def fault_of(problem: Any, candidate: Candidate) -> str:
    """The syntax error, in a line; empty if there is none, or for a problem of a user's own."""
    if candidate.text is None:
        return candidate.fault or "no answer in the text"
    form = format_of(problem)
    return form.fault(problem, candidate.text) if form else ""


def laid_out(problem: Any, candidate: Candidate) -> str | None:
    """The candidate in its language's usual layout; None if it has a fault, or no layout that is surely the same:
    the syntax trees are equal, docstrings to the letter, or the actions are."""
    form = format_of(problem)
    if candidate.text is None or form is None or form.fault(problem, candidate.text):
        return None
    return form.layout(problem, candidate.text)
