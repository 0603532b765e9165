"""What a given program assumes, as far as a candidate leaves it."""

import pytest

from rlvr_exp.domains.dafny.guards import leaves_assumed, read_declarations

HOLE = "method M() returns (r: int) ensures r > 3\n"
OPEN = "lemma Given() ensures 1 < 2\n"


@pytest.mark.parametrize(
    ("given", "candidate", "wanted"),
    [
        (HOLE, HOLE + "{ r := 4; }", False),
        (HOLE, HOLE, True),
        (HOLE + OPEN, HOLE + "{ r := 4; }" + OPEN, True),
        (HOLE + OPEN, HOLE + "{ r := 4; }" + OPEN + "{ }", False),
        (HOLE + "{ r := 3; }", HOLE + "{ r := 4; }", False),
        (HOLE + "{ r := 3; }", HOLE + "{ r := 4; }" + OPEN, False),
        (HOLE + "{ assume false; }", HOLE + "{ assume false; }", True),
        (HOLE + "lemma L() free ensures false { }", HOLE + "{ r := 4; } lemma L() free ensures false { }", True),
        (HOLE, HOLE + "{ r := 4;", True),
    ],
)
def test_what_a_candidate_fills_in_is_no_assumption(given: str, candidate: str, wanted: bool) -> None:
    assert leaves_assumed(read_declarations(given), candidate) == wanted
