"""The score of tests as calls: inputs outside of a task, heavy calls and repeated tests earn nothing; good tests earn all."""

import ast
from pathlib import Path

import pytest
import yaml

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.calls import CallsProblem
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_tests import PythonTests

TABLE = yaml.safe_load(Path(__file__).with_name("rows.yaml").read_text())
PROBLEMS = TABLE.pop("problems")
ROWS = [(kind, name, row) for kind, classes in TABLE.items() for name, rows in classes.items() for row in rows]


@pytest.fixture(scope="module")
def judged():
    """Of each row the executions against the right and the wrong program of its problem; all at once."""
    with PythonTests(Sandbox(workers=2, cpu_s=1.0)) as verifier:

        def run(row: dict, program: str):
            known = tuple(map(ast.literal_eval, row["known"]))
            problem = CallsProblem("f", row["reference"], (row[program],), known=known)
            return verifier.execute(Request(problem, Candidate(row["tests"])))

        whole = []
        for _, _, row in ROWS:
            found = {**PROBLEMS[row["of"]], **row}
            changed = row.keys() & {"reference", "known"}
            whole.append({**found, "right": found["reference"]} if changed else found)
        waiting = [[run(row, program) for program in ("right", "wrong")] for row in whole]
        yield [[one.result(timeout=300) for one in pair] for pair in waiting]


@pytest.mark.parametrize("at", [pytest.param(at, id=f"{kind}-{name}-{at}") for at, (kind, name, _) in enumerate(ROWS)])
def test_tests_earn_what_they_are_worth(judged, at: int) -> None:
    kind, name, row = ROWS[at]
    right, wrong = judged[at]
    assert right.verdict.measures["mutation_score"] == 0.0 and right.verdict.outcome == "failed"
    if kind == "honest":
        assert wrong.verdict.outcome == "passed" and all(wrong.outputs[0]), wrong.verdict
    else:
        assert wrong.verdict.outcome == "failed" or name == "time"
    lines = wrong.verdict.total
    assert round(wrong.verdict.measures["duplicates"] * lines) == row.get("duplicates", 0)


def test_every_class_has_eight_rows() -> None:
    assert all(len(rows) >= 8 for classes in TABLE.values() for rows in classes.values())


def test_a_timeout_catches_on_its_own_line_alone() -> None:
    problem = CallsProblem("f", PROBLEMS["fibonacci"]["reference"], (PROBLEMS["fibonacci"]["right"],))
    tests = "f(40) == 102334155\nf(5) == 5\nf(6) == 8"
    with PythonTests(Sandbox(workers=1)) as verifier:
        found = verifier.execute(Request(problem, Candidate(tests))).result(timeout=300)
    assert found.outputs == ((True, True, True), ((True, False, False),))


@pytest.mark.parametrize(
    "act", ["__import__('os')._exit(0)", "[0] * 10 ** 9", "7 ** 10 ** 9", "print('a' * 10 ** 9)", "'a' * 10 ** 8"]
)
def test_a_call_that_ends_its_process_takes_no_other_call_with_it(act: str) -> None:
    program = f"def f(n):\n    return {act} if n == 4 else n\n"
    problem = CallsProblem("f", "def f(n):\n    return n\n", (program,))
    with PythonTests(Sandbox(workers=1, cpu_s=1.0)) as verifier:
        found = verifier.execute(Request(problem, Candidate("f(3) == 3\nf(4) == 4\nf(5) == 5"))).result(timeout=300)
    assert found.outputs == ((True, True, True), ((False, True, False),))
