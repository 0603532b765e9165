"""Small candidates that end at once, new for every round: the measurement is of the verifier."""

from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request

Function = tuple[str, str, list[Any], Any]
"""Code, entry point, arguments, expected value."""
Suite = tuple[str, str]
"""Code and the tests of it."""


def functions(turn: int, count: int) -> list[Function]:
    """One case each; every fourth is wrong."""
    return [
        (
            f"def add(x, y):\n    return x + y + {int(index % 4 == 3)}  # {turn}, {index}\n",
            "add",
            [turn, index],
            turn + index,
        )
        for index in range(count)
    ]


def function_request(candidate: Function) -> Request:
    code, entry_point, args, expected = candidate
    return Request(PythonProblem(entry_point, (Case(tuple(args), expected),)), Candidate(code))


def suites(turn: int, count: int) -> list[Suite]:
    """Two tests each; every fourth solution is wrong."""
    tests = "from solution import add\n\ndef test_small():\n    assert add(1, 2) == 3\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
    return [(code, tests) for code, *_ in functions(turn, count)]


def suite_request(candidate: Suite) -> Request:
    code, tests = candidate
    return Request(PytestProblem(tests), Candidate(code))


def proofs(turn: int, count: int) -> list[str]:
    """Dafny programs with a loop, each second of which cannot be proved."""
    return [_proof(f"{turn}_{index}", "i <= n" if index % 2 == 0 else "i <= n + 1") for index in range(count)]


def unreadable(turn: int, count: int) -> list[str]:
    """Dafny programs of which each second does not parse, and each other one does not resolve."""
    broken = [("invariant 0 <=", "invariant 0 <= <="), ("s := s + i", "s := s + missing")]
    return [_proof(f"{turn}_{index}", "i <= n").replace(*broken[index % 2]) for index in range(count)]


def _proof(name: str, bound: str) -> str:
    return f"""method Sum_{name}(n: nat) returns (s: nat)
  ensures 2 * s == n * (n + 1)
{{
  s := 0;
  var i := 0;
  while i < n
    invariant 0 <= i && {bound}
    invariant 2 * s == i * (i + 1)
  {{
    i := i + 1;
    s := s + i;
  }}
}}
"""


def proof_request(program: str) -> Request:
    return Request(DafnyProblem(program), Candidate(program))
