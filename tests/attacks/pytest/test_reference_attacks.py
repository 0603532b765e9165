"""Attacks beside a reference: none passes, and each suite can judge, since its reference passes it."""

import pytest
from reference_attacks import ATTACKS
from suite_arena import judge_all, make
from thinning import thinned

ROWS = thinned(ATTACKS, 2)


@pytest.fixture(scope="module")
def verifier():
    with make(workers=2, memory_mb=2048, cpu_s=12.0, wall_s=30.0) as verifier:
        yield verifier


@pytest.mark.property(18)
@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in ROWS])
def test_attack_never_passes(verifier, row):
    _, code, suite, reference, files = row
    (verdict,) = judge_all(verifier, [(code, suite, files)], reference)
    assert verdict.outcome == "failed", verdict
    if reference:
        assert judge_all(verifier, [(reference, suite, files)], reference)[0].outcome == "passed"
