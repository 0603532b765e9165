"""Every honest control passes, with the judge that has seen the attacks."""

import pytest
from dafny_attacks import ATTACKS
from dafny_controls import CONTROLS
from dafny_judge import Judge
from thinning import thinned

CHOSEN = thinned(CONTROLS, 6)


@pytest.fixture(scope="module")
def told(judge: Judge) -> Judge:
    judge.prefetch([(given, candidate) for _, _, given, candidate in ATTACKS[::10]])
    judge.prefetch([(given, candidate) for _, given, candidate in CHOSEN])
    return judge


@pytest.mark.parametrize(("given", "candidate"), [row[1:] for row in CHOSEN], ids=[row[0] for row in CHOSEN])
def test_control_passes(told: Judge, given: str, candidate: str) -> None:
    verdict = told(given, candidate)
    assert verdict.outcome == "passed", verdict
    assert verdict.score == 1.0
