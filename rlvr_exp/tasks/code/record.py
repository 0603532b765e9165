"""One task of a code set, once read: its prompt's inputs, its tests, a right program and wrong programs."""

from dataclasses import dataclass

from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

JUDGES = ("pytest", "python_io")
"""The two forms of a problem: a test file, or cases whose expected values never reach the candidate."""


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
    drawn: str = ""
    """The split where splits are drawn, if the ids of a set decide it: its own, or those of a set with the same tasks."""
