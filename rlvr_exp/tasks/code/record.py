"""One task of a code set, once read: its prompt's inputs, its tests, a right program and wrong programs."""

from dataclasses import dataclass

from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

JUDGES = ("pytest", "python_io")
"""The two forms of a problem: a test file, or cases whose expected values never reach the candidate."""


@dataclass(frozen=True)
class CodeRecord:
    """One task of a set."""

    id: str
    family: str
    split: str
    inputs: CodeInputs
    gold: str
    """The set's own solution: a complete module."""
    negatives: tuple[str, ...]
    """Complete modules of the set that must not pass: the buggy program, the program before its edit."""
    tests: PytestProblem
    cases: PythonProblem | None = None
    """The tests as cases, where the set has them as plain data."""
    why_no_cases: str = "its tests are a program, not arguments and values"
