"""Lines that a script runs, as the package coverage counts them, measured in the sandbox; and what a script cannot do to that."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.jobs import JobResult
from rlvr_exp.verifiers import line_coverage
from rlvr_exp.verifiers.line_coverage import LineCoverage, LineCoverageRunner, not_installed, read

SCRIPT = """import abc

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        pass

def used(number):
    if number:
        return 1
    return 2

def unused(number):
    half = number / 2

    # halves
    return half

def hidden():  # pragma: no cover
    return 1

assert used(1) == 1
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[LineCoverageRunner]:
    found = LineCoverageRunner(Sandbox(workers=1, wall_s=20))
    yield found
    found.close()


def test_lines_are_those_of_coverages_report_and_pragmas_hide_nothing_from_the_others(
    runner: LineCoverageRunner,
) -> None:
    found = runner.measure(SCRIPT).result()
    assert found is not None and found.listed == {11, 14, 15, 16, 17}, "the gap inside a range is listed"
    assert found.not_run == {11, 14, 17, 20}, "what a pragma leaves out, and no abstract method"
    assert found.statements == {1, 3, 8, 9, 10, 11, 13, 14, 17, 19, 20, 22}


def test_it_runs_as_the_main_program_with_its_threads(runner: LineCoverageRunner) -> None:
    script = (
        "import threading\n\ndef work():\n    seen.append(1)\n\nseen = []\nif __name__ == '__main__':\n"
        "    one = threading.Thread(target=work)\n    one.start()\n    one.join()\nassert seen\n"
    )
    found = runner.measure(script).result()
    assert found is not None and not found.listed and not found.not_run


@pytest.mark.parametrize(
    "script",
    ["assert False", "def f(:", "import sys; sys.exit(1)", "import os; os._exit(0)", "raise KeyboardInterrupt", "\0"],
)
def test_a_script_that_fails_has_no_lines(runner: LineCoverageRunner, script: str) -> None:
    assert runner.measure(script).result() is None


@pytest.mark.parametrize("script", ["", "import sys; sys.exit(0)", "raise SystemExit", "import os; os.chdir('/')"])
def test_a_script_that_ends_well_has_lines(runner: LineCoverageRunner, script: str) -> None:
    assert runner.measure(script).result() is not None


@pytest.mark.slow
def test_a_script_that_never_ends_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_coverage, "CPU_S", 1.0)
    runner = LineCoverageRunner(Sandbox(workers=1))
    try:
        assert runner.measure("while True:\n    pass").result() is None
    finally:
        runner.close()


def test_a_script_that_writes_over_its_own_file_is_still_measured_by_its_text(runner: LineCoverageRunner) -> None:
    script = "def unused():\n    return 1\n\nopen(__file__, 'w').write('x = 1')\n"
    found = runner.measure(script).result()
    assert found == LineCoverage(frozenset({2}), frozenset({1, 2, 4}), frozenset({2}))


FORGED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("lines"), lambda part: st.lists(part, max_size=4)
)


@given(FORGED, st.sampled_from(["exit", "cpu", "lost"]), st.integers(0, 1))
def test_forged_records_are_lines_or_nothing(record: object, end: str, status: int) -> None:
    data = wire.encode(record)
    result = JobResult(end, status, len(data).to_bytes(4, "big") + data)  # type: ignore[arg-type]
    found = read(result)
    assert found is None or (end == "exit" and status == 0 and all(line > 0 for line in found.listed))


@given(st.binary(max_size=60))
def test_broken_records_are_nothing(data: bytes) -> None:
    assert read(JobResult("exit", 0, data)) is None


def test_a_missing_package_is_told_by_the_option_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not_installed("evaluation.excess_code") is None
    monkeypatch.setattr(line_coverage, "find_spec", lambda name: None)
    problem = not_installed("evaluation.excess_code")
    assert problem is not None and "rlvr_exp[coverage]" in problem.remedy
