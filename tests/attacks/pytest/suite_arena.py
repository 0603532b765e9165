"""Shared parts of the attacks on the pytest verifier: a suite to cheat at, the type of an attack, and its judging.

An attack is a wrong solution that passes if it succeeds; a control is an honest solution that a naive guard breaks.
Both are written against `double`, whose suite uses the means of real suites.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.suite.verifier import PytestSuite

SUITE = """
import math
import unittest
import pytest
import solution
from solution import double

EXPECTED = {3: 6, 5: 10}

@pytest.fixture
def three(): return 3

def test_two(): assert double(2) == 4

def test_list(): assert double([1]) == [1, 1]

@pytest.mark.parametrize("x", [3, 5])
def test_many(x): assert double(x) == EXPECTED[x]

def test_raises():
    with pytest.raises(TypeError, match="unsupported|NoneType"): double(None)

def test_close():
    result = double(0.1)
    assert math.isclose(result, 0.2)
    assert result == pytest.approx(0.2)

def test_fixture(three, tmp_path, capsys): assert solution.double(three) == 6

class TestIt:
    answer = 8
    def test_it(self): assert double(4) == self.answer

class Case(unittest.TestCase):
    def test_case(self): self.assertEqual(double(6), 12)
"""
COMPARING = """
import math
import unittest
import pytest
from solution import double

def test_eq(): assert double(2) == 4
"""
"""A suite of comparisons alone, which an object that lies about itself passes."""
WRONG = "def double(x): return 0\n"
RIGHT = "def double(x): return x * 2\n"
OF_SANDBOX = {"cpu_s": 0.0, "wall_s": 0.0, "memory_mb": 0}
"""The limits are those of the sandbox node."""
SANDBOX = {"cpu_s": 0.8, "wall_s": 20.0, "memory_mb": 512, "output_kb": 64, "level": "auto", "require": ""}


def make(process: str = "bridged", workers: int = 1, **limits: float) -> PytestSuite:
    return PytestSuite(SimpleNamespace(workers=workers, **SANDBOX | limits), process=process, **OF_SANDBOX)


def judge(verifier: PytestSuite, code: str, suite: str = SUITE, files: dict[str, str] | None = None) -> Verdict:
    return judge_all(verifier, [(code, suite, files or {})])[0]


def judge_all(
    verifier: PytestSuite, rows: Sequence[tuple[str, str, dict[str, str]]], reference: str = ""
) -> list[Verdict]:
    """The verdicts on (solution, suite, files), in order."""
    problems = [PytestProblem(suite, tuple(files.items()), reference=reference) for _, suite, files in rows]
    return verifier.verify([Request(problem, Candidate(row[0])) for problem, row in zip(problems, rows, strict=True)])


def at_import(attack: str) -> str:
    """A wrong solution that attacks when it is loaded."""
    return textwrap.dedent(attack).strip() + "\n" + WRONG


def in_call(attack: str) -> str:
    """A wrong solution that attacks when it is called, in the middle of a test."""
    body = textwrap.indent(textwrap.dedent(attack).strip(), "    ")
    return f"def double(x):\n{body}\n    return 0\n"


Honest = tuple[str, str, str, dict[str, str]]
"""Name, solution, suite, files."""


def table(name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of NAME.yaml, by their kind."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(Path(__file__).with_name(f"{name}.yaml").read_bytes(), loader)


def solution_of(row: dict[str, Any]) -> str:
    """A row's program: complete, an attack on `double`, or lines before a right `double`."""
    if "solution" in row:
        return row["solution"]
    if "before" in row:
        return row["before"] + "\n" + RIGHT
    return in_call(row["in_call"]) if "in_call" in row else at_import(row["at_import"])


def of_row(row: dict[str, Any]) -> Honest:
    return row["name"], solution_of(row), row.get("suite", SUITE), row.get("files", {})
