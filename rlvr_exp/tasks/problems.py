"""Problems that verifiers judge against: one frozen type per kind. Tasks carry them, verifiers read them."""

from dataclasses import dataclass
from typing import Any, Literal

Protect = Literal["specification", "program"]
"""The protected part of a given Dafny program: its specification, with free code; or everything but annotations."""


@dataclass(frozen=True)
class Limits:
    """What one candidate may use. Zero means: the verifier's default."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: int = 0


@dataclass(frozen=True)
class Case:
    """One call of a Python candidate and the value it must return. Plain data: JSON types and tuples, nothing else."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class StdinCase:
    """One run of a program: what it reads on standard input and what it must print."""

    stdin: str
    expected_stdout: str


@dataclass(frozen=True)
class PythonProblem:
    """A Python function, or a complete program, to write, judged on cases.

    With an `entry_point` every case is a `Case`; without one the candidate is a program and every case a `StdinCase`.
    `strict` distinguishes tuples from lists (expected values from Python literals); without it they are equal (expected
    values from JSON). A bool is never an int. `atol` compares floats within a tolerance.
    """

    entry_point: str
    cases: tuple[Case, ...] | tuple[StdinCase, ...]
    atol: float = 0.0
    strict: bool = False
    limits: Limits = Limits()


@dataclass(frozen=True)
class PytestProblem:
    """A module `solution` to write, judged by the tests of a pytest file."""

    tests: str
    files: tuple[tuple[str, str], ...] = ()
    """Further files that the tests need: (relative name, text)."""
    limits: Limits = Limits()
    reference: str = ""
    """A right solution, where there is one: what it returns as plain data, a candidate must return as plain data."""


@dataclass(frozen=True)
class DafnyProblem:
    """A Dafny program to complete: the candidate is the complete program, the given specification is protected."""

    program: str
    limits: Limits = Limits()
    protect: Protect | None = None
    """The part that the candidate must keep; None: by the verifier's option."""
    keep: str | None = None
    """The same program with code, all of which the candidate must keep as well: without annotations the two are equal,
    and an empty body stays empty. The specification is that of `program`."""


@dataclass(frozen=True)
class AstGrepProblem:
    """A text to edit by an ast-grep action. The candidate is the action, as JSON or YAML text.

    `after` decides, compared as text or as a syntax tree by the verifier's option; with `tests` (a pytest file, Python
    only) they decide in its place.
    """

    language: str
    before: str
    after: str
    tests: str = ""
    limits: Limits = Limits()
