"""Attacks on a suite's run: none passes, none stays without a verdict. One attack each, ids by class."""

import pytest
from suite_arena import COMPARING, RIGHT, SUITE, judge, judge_all, make, of_row, solution_of, table
from thinning import thinned

OF_THE_CLASS, OWN = table("attacks"), table("suite_attacks")
ROWS = [
    (f"{name}: {row['name']}", solution_of(row), COMPARING if name == "equality" else SUITE)
    for name, rows in OF_THE_CLASS.items()
    for row in rows
]
for number, row in enumerate((*OWN["learning"], *OWN["grader"])):
    name, code, suite, _ = of_row(row)
    ROWS.append((f"{number} {name}", code, suite))
ROWS = thinned(ROWS)


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def verdicts(verifier):
    """All at once, since each is a few milliseconds of work and much waiting."""
    return judge_all(verifier, [(code, suite, {}) for _, code, suite in ROWS])


@pytest.fixture(scope="module")
def with_reference(verifier):
    """The attacks on `double`, whose right solution the problem has."""
    return judge_all(verifier, [(code, suite, {}) for _, code, suite in ROWS], RIGHT)


@pytest.mark.property(18)
@pytest.mark.parametrize("at", [pytest.param(at, id=name) for at, (name, _, _) in enumerate(ROWS)])
def test_attack_never_passes(verdicts, at):
    verdict = verdicts[at]
    assert verdict.outcome == "failed", verdict
    assert verdict.passed < max(verdict.total, 1)


ON_DOUBLE = [pytest.param(at, id=name) for at, (name, _, suite) in enumerate(ROWS) if suite in (SUITE, COMPARING)]


@pytest.mark.parametrize("at", ON_DOUBLE)
def test_attack_never_passes_beside_a_reference(with_reference, at):
    assert with_reference[at].outcome == "failed", with_reference[at]


def test_an_honest_solution_passes_after_all_of_them(verifier, verdicts):
    before = verifier._pool.pids()
    assert judge(verifier, RIGHT + "# after the attacks").outcome == "passed"
    assert verifier._pool.pids() == before


@pytest.mark.parametrize("name", OF_THE_CLASS)
def test_every_class_has_three_mechanisms(name):
    assert len({solution_of(row) for row in OF_THE_CLASS[name]}) >= 3
