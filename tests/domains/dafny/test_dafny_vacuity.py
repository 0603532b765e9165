"""Programs that the tool calls proved and that are not accepted: promises missing in its log, bodies that prove
false."""

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.guards import Facts, Violation, read_declarations
from rlvr_exp.domains.dafny.logs import read_23
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tool import Run, RunLimits, Tool
from rlvr_exp.domains.dafny.verifier import DafnyVerifier, Proof, contract_probe, probed
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

GIVEN = "method M(x: int) returns (y: int) ensures y > x { y := x; }\n"
DONE = GIVEN.replace("y := x;", "y := x + 1;")
BROKEN = "lemma {:axiom} Bad() ensures false\nmethod M() returns (x: int) ensures x > 3 { }\n"


def log(**bodies: str) -> str:
    """What Dafny prints for these bodies, each with its result."""
    lines = [
        f"Verifying Impl$$_module.__default.{name} ...\n  [1 proof obligation]  {end}" for name, end in bodies.items()
    ]
    good = sum(end == "verified" for end in bodies.values())
    total = f"\nDafny program verifier finished with {good} verified, {len(bodies) - good} errors"
    return "\n".join([*lines, total])


def objection(
    proved: str, *probes: str, text: str = DONE, every: bool = False, end: str = "done"
) -> Violation | Run | None:
    """The objection to a program whose proof and whose probes end with these logs."""
    declared = read_declarations(text)
    facts = Facts.of(declared.declarations)
    left = iter(probes)
    proof = Proof(
        read_declarations(GIVEN), text, facts, read_23(proved, 0), True, lambda *_: Run(end, next(left), 0), read_23
    )
    return proof.objection((), (), (), every)


def test_a_promise_that_the_log_leaves_out_must_show_as_an_error_when_probed() -> None:
    assert objection(log(M="verified"), "never run") is None
    assert objection(log(), log(M="error")) is None
    for probe in (log(), log(M="verified"), log(M="out of resource")):
        assert objection(log(), probe).rule == "unproved"


def test_each_of_two_bodies_of_one_name_must_be_in_the_log() -> None:
    both = DONE + "module A { lemma L() ensures true { } } module B { module A { lemma L() ensures true { } } }"
    one = log(M="verified", L="verified").replace("__default.L", "A.__default.L").replace("_module.A", "A")
    assert objection(one, log(), text=both).rule == "unproved"


def test_probes_that_fall_to_a_limit_leave_a_doubt() -> None:
    assert objection(log(M="verified"), "", every=True, end="cpu").end == "cpu"
    assert objection(log(), "", end="cpu").end == "cpu"


def test_a_body_whose_probe_falls_to_its_count_of_resources_is_probed_with_that_of_the_proof() -> None:
    late = log(M="out of resource")
    assert objection(log(M="verified"), late, log(M="verified"), log(M="error"), every=True).rule == "vacuous"
    for probe in (log(M="error"), late):
        assert objection(log(M="verified"), late, probe, every=True) is None


def test_a_body_without_a_promise_may_be_silent_and_is_probed_all_the_same() -> None:
    quiet = DONE + "method Q() { }"
    assert objection(log(M="verified"), log(M="error", Q="error"), text=quiet, every=True) is None
    assert objection(log(M="verified"), log(M="error"), text=quiet, every=True).rule == "unproved"


def test_a_new_body_that_requires_nothing_must_not_prove_false() -> None:
    helped = DONE + "lemma L() { } lemma K() requires 1 == 2 { }"
    ends = {"M": "error", "L": "error", "K": "verified"}
    assert objection(log(M="verified"), log(**ends), text=helped, every=True) is None
    assert objection(log(M="verified"), log(**{**ends, "L": "verified"}), text=helped, every=True).rule == "vacuous"


def test_every_way_out_is_probed() -> None:
    text, labels = probed("method M() { if * { return; } } iterator I() { while true { yield; } } lemma L() { }")
    assert labels == {"M": 1, "I": 1, "L": 1} and text.count("assert false;") == 5
    assert "{  assert false; return; }" in text and "assert false; yield;" in text


def test_only_wanted_bodies_are_probed_and_functions_never() -> None:
    text, labels = probed("method M() { } method N() { } function F(): int { 3 }", lambda label: label == "N")
    assert labels == {"N": 1} and text.startswith("method M() { } method N() {  assert false; }")


def test_a_method_that_need_not_end_is_not_probed() -> None:
    assert not probed("method M() decreases * { while true decreases * { } }")[1]


def test_a_contract_is_probed_without_the_body_and_written_where_there_is_none() -> None:
    text = contract_probe(
        "lemma L(x: int) requires x > 3 ensures x > 2; method M() ensures 1 > 2 { var y := 1; }", ["L", "M"]
    )
    assert "ensures x > 2;  { assume x > 2; assert false; }" in text
    assert text.endswith("assert false; }") and "var" not in text


@pytest.fixture(scope="module")
def verifier(dafny: Tool):
    with DafnyVerifier(Sandbox(workers=1), rlimit=3_000_000, cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        yield verifier


def ask(verifier: DafnyVerifier, given: str, candidate: str) -> Verdict:
    return verifier.verify([Request(DafnyProblem(given), Candidate(candidate))])[0]


def test_false_at_the_end_of_a_body_is_refused_by_default(verifier: DafnyVerifier) -> None:
    assert ask(verifier, BROKEN, BROKEN.replace("{ }", "{ Bad(); x := 0; }")).rule == "vacuous"
    assert ask(verifier, BROKEN, BROKEN.replace("{ }", "{ x := 4; }")).outcome == "passed"


def test_false_before_every_return_is_refused(verifier: DafnyVerifier) -> None:
    body = "{ Bad(); if * { return 0; } else { return 1; } }"
    assert ask(verifier, BROKEN, BROKEN.replace("{ }", body)).rule == "vacuous"
    assert ask(verifier, BROKEN, BROKEN.replace("{ }", "{ if * { return 4; } else { return 5; } }")).outcome == "passed"


@pytest.mark.parametrize(
    "given",
    [
        "lemma L(x: int) requires x > 3 requires x < 2 ensures x == 9 { }",
        "lemma L(x: int) requires x * x == 2 ensures false { if x >= 2 { assert x * x >= 4; } assert x < 2; }",
        "method M(x: int) requires x != x returns (y: int) ensures y == 3 { y := 4; }".replace(
            "requires x != x returns (y: int)", "returns (y: int) requires x != x"
        ),
    ],
)
def test_a_contract_that_comes_to_false_is_the_given_programs_own(verifier: DafnyVerifier, given: str) -> None:
    assert ask(verifier, given, given + "// as given").outcome == "passed"


def test_the_probe_is_part_of_the_verdict_that_is_remembered(dafny: Tool) -> None:
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        first, second = (ask(verifier, GIVEN, DONE) for _ in range(2))
        assert (first.cached, second.cached, verifier.metrics()["judged"]) == (False, True, 1)


def test_a_probe_that_reaches_a_limit_is_repeated_and_its_verdict_is_not_remembered(dafny: Tool, monkeypatch) -> None:
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        assert ask(verifier, GIVEN, DONE + "// first").outcome == "passed"
        (runner,), real, ended = verifier._all, verifier._all[0].run, []

        def run(text: str, extra: list[str], limits: RunLimits, may_prove: object) -> Run:
            if "/errorLimit:1" not in extra or len(ended) == 2:
                return real(text, extra, limits, may_prove)
            ended.append(limits.cpu_s)
            return Run("cpu")

        monkeypatch.setattr(runner, "run", run)
        first, second = (ask(verifier, GIVEN, DONE) for _ in range(2))
        assert (first.outcome, first.bucket, ended) == ("failed", "timeout", [20, 60])
        assert (second.outcome, second.cached) == ("passed", False)


def test_without_the_option_only_what_the_log_leaves_out_is_probed(dafny: Tool) -> None:
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048, vacuity=False) as verifier:
        assert ask(verifier, BROKEN, BROKEN.replace("{ }", "{ Bad(); x := 0; }")).outcome == "passed"
