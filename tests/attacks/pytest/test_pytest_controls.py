"""Honest solutions and suites under the guard: all pass. As many kinds of honest code as rules that it might hit."""

from importlib.util import find_spec

import pytest
from control_tables import SOLUTIONS, SUITES
from honest_tables import HONEST, PACKAGES
from suite_arena import judge, make

CONTROLS = [pytest.param(code, suite, files, id=name) for name, code, suite, files in (*SOLUTIONS, *SUITES, *HONEST)]


@pytest.fixture(scope="module")
def verifier():
    with make(memory_mb=2048, cpu_s=8.0, wall_s=60.0) as verifier:
        yield verifier


@pytest.mark.parametrize(("code", "suite", "files"), CONTROLS)
def test_honest_solution_passes(verifier, code, suite, files):
    verdict = judge(verifier, code, suite, files)
    assert verdict.outcome == "passed", verdict
    assert verdict.passed == verdict.total > 0


@pytest.mark.parametrize(("name", "code", "suite"), PACKAGES, ids=[name for name, _, _ in PACKAGES])
def test_package_that_the_solution_alone_imports(name, code, suite):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    with make(memory_mb=8192, cpu_s=60.0, wall_s=300.0) as verifier:
        verdict = judge(verifier, code, suite)
    assert verdict.outcome == "passed", verdict
