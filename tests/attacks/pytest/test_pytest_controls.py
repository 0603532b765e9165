"""Honest solutions and suites on the bridge: all pass, with a reference and without. As many kinds of honest code as
there are ways to look at a solution."""

from importlib.util import find_spec

import pytest
from suite_arena import judge, judge_all, make, of_row, table
from thinning import thinned

BY_REFERENCE = {"matrix", "string proxies"}
"""Their classes compare with plain data by their own methods, and nothing in their suites but a reference shows that
they are classes."""
TABLE = table("honest")
ROWS = [of_row(row) for row in (*TABLE["solutions"], *TABLE["suites"], *TABLE["programs"])]
ROWS = thinned(row for row in ROWS if row[0] not in BY_REFERENCE) + [row for row in ROWS if row[0] in BY_REFERENCE]
ALL = [pytest.param(at, id=row[0]) for at, row in enumerate(ROWS)]


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2, memory_mb=2048, cpu_s=8.0, wall_s=60.0) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def verdicts(verifier):
    return judge_all(verifier, [row[1:] for row in ROWS])


@pytest.mark.parametrize("at", [case for case in ALL if case.id not in BY_REFERENCE])
def test_honest_solution_passes(verdicts, at):
    assert verdicts[at].outcome == "passed", verdicts[at]
    assert verdicts[at].passed == verdicts[at].total > 0


@pytest.mark.parametrize("name", sorted(BY_REFERENCE))
def test_what_only_a_reference_says(verifier, verdicts, name):
    (at,) = [at for at, row in enumerate(ROWS) if row[0] == name]
    _, code, suite, files = ROWS[at]
    assert verdicts[at].outcome == "failed"
    assert judge_all(verifier, [(code + "\n# another", suite, files)], code)[0].outcome == "passed"


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in thinned(TABLE["packages"])])
def test_package_that_the_solution_alone_imports(row):
    name, code, suite, _ = of_row(row)
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    with make(memory_mb=8192, cpu_s=60.0, wall_s=300.0) as verifier:
        verdict = judge(verifier, code, suite)
    assert verdict.outcome == "passed", verdict
