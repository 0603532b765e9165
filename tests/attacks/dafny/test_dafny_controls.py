"""Every honest control passes, with the judge that has seen the attacks."""

import pytest
from dafny_attacks import ATTACKS
from dafny_controls import CONTROLS
from dafny_judge import Judge


@pytest.fixture(scope="module")
def told(judge: Judge) -> Judge:
    judge.prefetch([(given, candidate) for _, _, given, candidate in ATTACKS[::10]])
    judge.prefetch([(given, candidate) for _, given, candidate in CONTROLS])
    return judge


@pytest.mark.parametrize(("given", "candidate"), [row[1:] for row in CONTROLS], ids=[row[0] for row in CONTROLS])
def test_control_passes(told: Judge, given: str, candidate: str) -> None:
    verdict = told(given, candidate)
    assert verdict.outcome == "passed", verdict
    assert verdict.score == 1.0
