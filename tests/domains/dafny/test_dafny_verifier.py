"""The verifier: verdicts, scores, limits, the prover's resource count, the vacuity probe."""

from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tool import Tool, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier, probed
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict

GIVEN = """
method Up(x: int) returns (y: int) ensures y > x { y := x; }
method Down(x: int) returns (y: int) ensures y < x { y := x - 1; }
"""
DONE = GIVEN.replace("y := x;", "y := x + 1;")
SWAP = """
method Swap(X: bv8, Y: bv8) returns (x: bv8, y: bv8) ensures x == Y && y == X
{ x, y := X, Y; x := x ^ y; y := x ^ y; x := x ^ y; }
"""
"""True, found within a second, and expensive in the prover's count."""
HARD = "lemma L(x: int, y: int, z: int) requires x > 2 && y > 2 && z > 2 ensures x*x*x + y*y*y != z*z*z { }"


def build(**own: object) -> DafnyVerifier:
    return DafnyVerifier(Sandbox(workers=1), **{"cpu_s": 60, "wall_s": 300, "memory_mb": 2048, **own})


def ask(verifier: DafnyVerifier, given: str, candidate: str | None, limits: Limits = Limits()) -> Verdict:
    return verifier.verify([Request(DafnyProblem(given, limits), Candidate(candidate))])[0]


@pytest.fixture(scope="module")
def verifier(dafny: Tool):
    with build(rlimit=3_000_000) as verifier:
        yield verifier


def test_score_is_the_share_of_the_given_procedures(verifier: DafnyVerifier) -> None:
    assert ask(verifier, GIVEN, DONE).score == 1.0
    half = ask(verifier, GIVEN, GIVEN)
    assert (half.bucket, half.passed, half.total) == ("verify", 1, 2)
    padded = ask(verifier, GIVEN, GIVEN + "".join(f"lemma L{i}() {{ assert {i} < 9; }}" for i in range(9)))
    assert padded.score == half.score
    helper = ask(verifier, GIVEN, DONE + "lemma Wrong() ensures false { }")
    assert (helper.outcome, helper.bucket) == ("failed", "verify") and helper.score < 1


def test_second_question_comes_from_memory(verifier: DafnyVerifier) -> None:
    first, second = (ask(verifier, GIVEN, DONE + "// cached") for _ in range(2))
    assert (first.cached, second.cached, second.outcome) == (False, True, "passed")


def test_no_answer_is_a_parse_failure_and_another_problem_no_verdict(verifier: DafnyVerifier) -> None:
    assert ask(verifier, GIVEN, None).bucket == "parse"
    request = Request(PythonProblem("f", ()), Candidate("x"))
    assert verifier.verify([request])[0].outcome == "no_verdict"


def test_unreadable_given_program_proves_nothing(verifier: DafnyVerifier) -> None:
    assert ask(verifier, GIVEN + "}", DONE).rule == "unreadable"
    assert ask(verifier, GIVEN + "}", GIVEN + "}").bucket == "parse"


@pytest.mark.parametrize("rlimit", thinned([1, 1000, 10_000, 100_000]))
def test_running_out_of_the_resource_count_never_passes(dafny: Tool, rlimit: int) -> None:
    with build(rlimit=rlimit) as verifier:
        verdict = ask(verifier, SWAP, SWAP)
        assert verdict.outcome == "failed", verdict


def test_out_of_resource_is_a_cacheable_timeout(dafny: Tool) -> None:
    with build(rlimit=1_000_000) as verifier:
        verdicts = [ask(verifier, SWAP, SWAP) for _ in range(2)]
        assert [(verdict.bucket, verdict.cached) for verdict in verdicts] == [("timeout", False), ("timeout", True)]


@pytest.mark.slow
def test_wall_clock_alone_is_tried_twice_and_not_remembered(dafny: Tool) -> None:
    with build() as verifier:
        verdicts = [ask(verifier, HARD, HARD, Limits(wall_s=1)) for _ in range(2)]
        assert [(verdict.bucket, verdict.cached) for verdict in verdicts] == [("timeout", False)] * 2
        assert "twice" in verdicts[0].log


def test_vacuity_probe_rejects_what_proves_everything(dafny: Tool) -> None:
    given = "lemma {:axiom} Bad() ensures false\nmethod M() returns (x: int) ensures x > 3 { }"
    with build(vacuity=True) as verifier:
        assert ask(verifier, given, given.replace("{ }", "{ Bad(); x := 0; }")).rule == "vacuous"
        assert ask(verifier, given, given.replace("{ }", "{ x := 4; }")).outcome == "passed"


def test_probe_stands_at_the_end_of_bodies_that_can_be_reached() -> None:
    text, names = probed("method M() { x := 1; } method N() { return; } method O() decreases * { while true { } }")
    assert names == {"M": 1, "N": 1} and text.startswith("method M() { x := 1;  assert false; }")
    assert "method N() {  assert false; return;" in text and text.endswith("decreases * { while true { } }")


@pytest.mark.slow
def test_strict_level_and_cold_give_the_same_verdicts(dafny: Tool) -> None:
    with DafnyVerifier(Sandbox(workers=1, level="strict"), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        assert ask(verifier, GIVEN, DONE).outcome == "passed"
        assert ask(verifier, GIVEN, GIVEN).bucket == "verify"
        assert ask(verifier, GIVEN, DONE.replace("ensures y > x", "")).rule == "spec-changed"


def test_missing_tool_is_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="apt-get install dafny"):
        find(str(tmp_path / "dafny"))
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho Something 1.0\n")
    other.chmod(0o755)
    with pytest.raises(InputError, match="unknown version"):
        find(str(other))


def test_manifest_names_the_tool_and_the_prover(verifier: DafnyVerifier) -> None:
    assert "Dafny" in verifier.tool()["dafny"] or verifier.tool()["dafny"][0].isdigit()
