"""Honest solutions and suites under the guard: all pass. As many kinds of honest code as rules that it might hit."""

import pytest
from control_tables import SOLUTIONS, SUITES
from suite_arena import judge, make

CONTROLS = [pytest.param(code, suite, files, id=name) for name, code, suite, files in (*SOLUTIONS, *SUITES)]


@pytest.fixture(scope="module")
def verifier():
    with make(memory_mb=2048, cpu_s=8.0, wall_s=60.0) as verifier:
        yield verifier


@pytest.mark.parametrize(("code", "suite", "files"), CONTROLS)
def test_honest_solution_passes(verifier, code, suite, files):
    verdict = judge(verifier, code, suite, files)
    assert verdict.outcome == "passed", verdict
    assert verdict.passed == verdict.total > 0
