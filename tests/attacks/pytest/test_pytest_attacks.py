"""Attacks on a suite's run: none passes, and the rule that answers it is named. One attack each, ids by class."""

import pytest
from attack_tables import OF_THE_CLASS
from suite_arena import COMPARING, RIGHT, SUITE, judge, make
from suite_attacks import GRADER, LEARNING

CASES = [
    pytest.param(code, rules, COMPARING if name == "equality" else SUITE, id=f"{name}: {mechanism}")
    for name, rows in OF_THE_CLASS.items()
    for mechanism, code, rules in rows
]
SEPARATE = [
    pytest.param(code, COMPARING if name == "equality" else SUITE, id=f"{name}: {mechanism}")
    for name in ("frames", "walks", "equality", "exits", "skips", "forgeries", "collection", "exceptions")
    for mechanism, code, _ in OF_THE_CLASS[name]
]


@pytest.fixture(scope="module")
def together():
    with make() as verifier:
        yield verifier


@pytest.fixture(scope="module")
def apart():
    with make(separate=True) as verifier:
        yield verifier


@pytest.mark.property(18)
@pytest.mark.parametrize(("code", "rules", "suite"), CASES)
def test_attack_never_passes(together, code, rules, suite):
    verdict = judge(together, code, suite)
    assert verdict.outcome in ("failed", "rejected"), verdict
    assert not rules or verdict.rule in rules, verdict
    assert verdict.passed < max(verdict.total, 1)


@pytest.mark.parametrize(
    ("code", "suite"), [pytest.param(code, suite, id=name) for name, code, suite in (*LEARNING, *GRADER)]
)
def test_attack_on_a_suite_of_its_own_never_passes(together, code, suite):
    verdict = judge(together, code, suite)
    assert verdict.outcome in ("failed", "rejected"), verdict


@pytest.mark.parametrize(("code", "suite"), SEPARATE)
def test_attack_never_passes_from_a_process_of_its_own(apart, code, suite):
    verdict = judge(apart, code, suite)
    assert verdict.outcome in ("failed", "rejected"), verdict


def test_an_honest_solution_passes_after_all_of_them(together):
    before = together._pool.pids()
    assert judge(together, RIGHT + "# after the attacks").outcome == "passed"
    assert together._pool.pids() == before


@pytest.mark.parametrize("name", OF_THE_CLASS)
def test_every_class_has_three_mechanisms(name):
    assert len({code for _, code, _ in OF_THE_CLASS[name]}) >= 3
