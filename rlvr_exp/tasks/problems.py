"""What verifiers judge against: one frozen type per kind of problem. Tasks carry them, verifiers read them."""

from dataclasses import dataclass
from typing import Any, Literal

Protect = Literal["specification", "program"]
"""Of a given Dafny program: its specification, code being free; or all but annotations."""


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
    """One run of a whole program: what it reads on standard input and what it must print."""

    stdin: str
    expected_stdout: str


@dataclass(frozen=True)
class PythonProblem:
    """A Python function, or a whole program, to write, judged on cases.

    With an `entry_point` every case is a `Case`; without one the candidate is a program and every case a `StdinCase`.
    `strict` tells tuples from lists (answers given as Python literals); without it they are equal (answers given as
    JSON). A bool is never an int. `atol` compares floats within a tolerance.
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
    """Further files that the tests need beside them: (relative name, text)."""
    limits: Limits = Limits()
    reference: str = ""
    """A solution that is right, where there is one: what it gives as plain data, a candidate must give as plain data."""


@dataclass(frozen=True)
class DafnyProblem:
    """A Dafny program to complete: the candidate is the whole program, the given one's specification is protected."""

    program: str
    limits: Limits = Limits()
    protect: Protect | None = None
    """What the candidate must keep; None: what the verifier's option says."""
    keep: str | None = None
    """The same program with code, all of which the candidate must keep as well: without annotations the two are equal,
    and what is empty stays empty. The specification is that of `program`."""


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
