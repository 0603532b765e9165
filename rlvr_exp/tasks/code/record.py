"""What one task of a code set is, once read: what it asks, what judges it, a right program and some that are not."""

from dataclasses import dataclass

from rlvr_exp.tasks.problems import PytestProblem, PythonProblem

JUDGES = ("pytest", "python_io")
"""The two forms of a problem: a test file, or cases whose expected values never meet the candidate."""


@dataclass(frozen=True)
class CodeInputs:
    """What a prompt is worded from."""

    instruction: str
    before: str = ""
    """The program to edit or to repair; empty where one is written from nothing."""
    given: str = ""
    """A signature, a header or an example that a program to write has to fit."""


@dataclass(frozen=True)
class CodeRecord:
    """One task of a set."""

    id: str
    family: str
    split: str
    inputs: CodeInputs
    gold: str
    """The set's own solution: a whole module."""
    negatives: tuple[str, ...]
    """Whole modules of the set that must not pass: the buggy program, the one before its edit."""
    tests: PytestProblem
    cases: PythonProblem | None = None
    """The same as cases, where the set gives them as plain data."""
    why_no_cases: str = "its tests are a program, not arguments and values"
