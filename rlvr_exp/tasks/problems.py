"""What verifiers judge against: one frozen type per kind of problem. Tasks carry them, verifiers read them."""

from dataclasses import dataclass
from typing import Any


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
class PythonProblem:
    """A Python function to write, judged on cases.

    `strict` tells tuples from lists (answers given as Python literals); without it they are equal (answers given as
    JSON). A bool is never an int. `atol` compares floats within a tolerance.
    """

    entry_point: str
    cases: tuple[Case, ...]
    atol: float = 0.0
    strict: bool = False
    limits: Limits = Limits()
