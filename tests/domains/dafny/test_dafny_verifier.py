"""The verifier: verdicts, scores, limits, the prover's resource count, and the acceptance of programs that the tool calls
proved: promises missing in its log, and bodies that prove false."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dafny_judge import Judge, of_dafny, told
from thinning import thinned

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.guards import Facts, Violation, read_declarations
from rlvr_exp.domains.dafny.logs import read_23
from rlvr_exp.domains.dafny.problem import ROLES
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.tool import RunLimits, Tool, ToolRun, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier, Proof, contract_probe, probed
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
BROKEN = "lemma {:axiom} Bad() ensures false\nmethod M() returns (x: int) ensures x > 3 { }\n"


def test_score_is_the_share_of_the_given_procedures(judge: Judge) -> None:
    assert judge(GIVEN, DONE).score == 1.0
    half = judge(GIVEN, GIVEN)
    assert (half.bucket, half.passed, half.total) == ("verify", 1, 2)
    padded = judge(GIVEN, GIVEN + "".join(f"lemma L{i}() {{ assert {i} < 9; }}" for i in range(9)))
    assert padded.score == half.score
    helper = judge(GIVEN, DONE + "lemma Wrong() ensures false { }")
    assert (helper.outcome, helper.bucket) == ("failed", "verify") and helper.score < 1


def test_a_verdict_is_remembered_with_its_probe(judge: Judge) -> None:
    before = judge.verifier.metrics()["judged"]
    first, second = (judge(GIVEN, DONE + "// cached") for _ in range(2))
    assert (first.cached, second.cached, second.outcome) == (False, True, "passed")
    assert judge.verifier.metrics()["judged"] == before + 1


def test_no_answer_is_a_parse_failure_and_another_problem_no_verdict(judge: Judge) -> None:
    assert judge(GIVEN, None).bucket == "parse"
    request = Request(PythonProblem("f", ()), Candidate("x"))
    assert judge.verifier.verify([request])[0].outcome == "no_verdict"


def test_unreadable_given_program_proves_nothing(judge: Judge) -> None:
    assert judge(GIVEN + "}", DONE).rule == "unreadable"
    assert judge(GIVEN + "}", GIVEN + "}").bucket == "parse"


@pytest.mark.parametrize("rlimit", thinned([1, 1000, 10_000, 100_000]))
def test_running_out_of_the_resource_count_never_passes(dafny: Tool, rlimit: int) -> None:
    with of_dafny(rlimit=rlimit) as verifier:
        verdict = Judge(verifier)(SWAP, SWAP)
        assert verdict.outcome == "failed", verdict


def test_out_of_resource_is_a_cacheable_timeout(dafny: Tool) -> None:
    with of_dafny(rlimit=1_000_000) as verifier:
        verdicts = [Judge(verifier)(SWAP, SWAP) for _ in range(2)]
        assert [(verdict.bucket, verdict.cached) for verdict in verdicts] == [("timeout", False), ("timeout", True)]


@pytest.mark.slow
def test_wall_clock_alone_is_tried_twice_and_not_remembered(dafny: Tool) -> None:
    with of_dafny() as verifier:
        verdicts = [Judge(verifier)(HARD, HARD, Limits(wall_s=1)) for _ in range(2)]
        assert [(verdict.bucket, verdict.cached) for verdict in verdicts] == [("timeout", False)] * 2
        assert "twice" in verdicts[0].log


@pytest.mark.slow
def test_strict_level_and_cold_give_the_same_verdicts(dafny: Tool) -> None:
    with DafnyVerifier(Sandbox(workers=1, level="strict"), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        ask = Judge(verifier)
        assert ask(GIVEN, DONE).outcome == "passed"
        assert ask(GIVEN, GIVEN).bucket == "verify"
        assert ask(GIVEN, DONE.replace("ensures y > x", "")).rule == "spec-changed"


def test_missing_tool_is_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="apt-get install dafny"):
        find(str(tmp_path / "dafny"))
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho Something 1.0\n")
    other.chmod(0o755)
    with pytest.raises(InputError, match="unknown version"):
        find(str(other))


def test_manifest_names_the_tool_and_the_prover(judge: Judge) -> None:
    tool = judge.verifier.tool()
    assert "Dafny" in tool["dafny"] or tool["dafny"][0].isdigit()


# Both roles' tasks: golds pass, with the changes that each role may make, and no further.

ROW = {
    "id": "sum",
    "before": "function Tri(n: nat): nat { if n == 0 then 0 else n + Tri(n - 1) }\n\n",
    "header": "method Sum(n: nat) returns (s: nat)\n",
    "spec": "  ensures s == Tri(n)\n",
    "body": "{\n  s := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
    "annotated_body": "{\n  s := 0;\n  var i := 0;\n  while i < n\n    invariant 0 <= i <= n\n    invariant s == Tri(i)\n"
    "  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
}
SUM2 = """function method Sum2(n: nat): nat
  ensures Sum2(n) == Tri(n)
{ if n == 0 then 0 else n + Sum2(n - 1) }
"""
BODY, ANNOTATED = ROW["body"], ROW["annotated_body"]


@pytest.fixture(scope="module")
def of_role(judge: Judge, tmp_path_factory) -> Callable[[str, str | None], Verdict]:
    folder: Path = tmp_path_factory.mktemp("rows")
    (folder / "train.jsonl").write_text(json.dumps(ROW))
    domains = {role: DafnyDomain(str(folder), role=role, dev_fraction=0, test_fraction=0) for role in ROLES}

    def judge_role(role: str, completion: str | None) -> Verdict:
        (task,) = domains[role].splits()["train"]
        candidate = domains[role].parse(task.gold if completion is None else completion, task)
        return judge.verifier.verify([Request(task.problem, candidate)])[0]

    return judge_role


@pytest.mark.parametrize(
    ("role", "completion", "wanted"),
    [
        ("writer", None, "passed"),
        ("writer", BODY.replace("i", "k").replace("whkle", "while"), "passed"),
        (
            "writer",
            "{\n  s := n;\n  var i := 0;\n  while i < n\n  {\n    s := s + i;\n    i := i + 1;\n  }\n}",
            "verify",
        ),
        ("writer", "{ assume s == Tri(n); }", "assume"),
        ("writer", "{ s := 0; var x: nothing; }", "resolve"),
        ("writer", "{ s := 0; x x }", "parse"),
        ("writer", "nothing", "parse"),
        ("annotator", None, "passed"),
        ("annotator", BODY, "verify"),
        ("annotator", ANNOTATED.replace("s := 0;", "s := 0; s := 0 + s;"), "program-changed"),
        ("annotator", "{ s := n * (n + 1) / 2; }", "program-changed"),
        ("annotator", ANNOTATED.replace("    i := i", "    assert s >= 0;\n    i := i"), "passed"),
        ("annotator", BODY.replace("while", "assume false; while"), "program-changed"),
    ],
)
def test_what_a_role_may_do(of_role, role: str, completion: str | None, wanted: str) -> None:
    assert told(of_role(role, completion)) == wanted


def test_a_problem_without_a_word_on_it_is_protected_as_the_verifier_says(judge: Judge) -> None:
    given, other = (ROW["before"] + ROW["header"] + ROW["spec"] + body for body in (BODY, "{ s := Sum2(n); }\n" + SUM2))
    found = [judge(given, other, protect=what) for what in (None, "specification", "program")]
    assert [told(one) for one in found] == ["passed", "passed", "program-changed"]


# Programs that the tool calls proved.

UP = "method M(x: int) returns (y: int) ensures y > x { y := x; }\n"
UP_DONE = UP.replace("y := x;", "y := x + 1;")


def log(**bodies: str) -> str:
    """What Dafny prints for these bodies, each with its result."""
    lines = [
        f"Verifying Impl$$_module.__default.{name} ...\n  [1 proof obligation]  {end}" for name, end in bodies.items()
    ]
    good = sum(end == "verified" for end in bodies.values())
    total = f"\nDafny program verifier finished with {good} verified, {len(bodies) - good} errors"
    return "\n".join([*lines, total])


def objection(
    proved: str, *probes: str, text: str = UP_DONE, every: bool = False, end: str = "done"
) -> Violation | ToolRun | None:
    """The objection to a program whose proof and whose probes end with these logs."""
    declared = read_declarations(text)
    facts = Facts.of(declared.declarations)
    left = iter(probes)
    proof = Proof(
        read_declarations(UP), text, facts, read_23(proved, 0), True, lambda *_: ToolRun(end, next(left), 0), read_23
    )
    return proof.objection((), (), (), every)


def test_a_promise_that_the_log_leaves_out_must_show_as_an_error_when_probed() -> None:
    assert objection(log(M="verified"), "never run") is None
    assert objection(log(), log(M="error")) is None
    for probe in (log(), log(M="verified"), log(M="out of resource")):
        assert objection(log(), probe).rule == "unproved"


def test_each_of_two_bodies_of_one_name_must_be_in_the_log() -> None:
    both = UP_DONE + "module A { lemma L() ensures true { } } module B { module A { lemma L() ensures true { } } }"
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
    quiet = UP_DONE + "method Q() { }"
    assert objection(log(M="verified"), log(M="error", Q="error"), text=quiet, every=True) is None
    assert objection(log(M="verified"), log(M="error"), text=quiet, every=True).rule == "unproved"


def test_a_new_body_that_requires_nothing_must_not_prove_false() -> None:
    helped = UP_DONE + "lemma L() { } lemma K() requires 1 == 2 { }"
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


def test_probe_stands_at_the_end_of_bodies_that_can_be_reached() -> None:
    text, names = probed("method M() { x := 1; } method N() { return; } method O() decreases * { while true { } }")
    assert names == {"M": 1, "N": 1} and text.startswith("method M() { x := 1;  assert false; }")
    assert "method N() {  assert false; return;" in text and text.endswith("decreases * { while true { } }")


def test_false_at_the_end_of_a_body_is_refused_unless_the_option_is_off(judge: Judge, monkeypatch) -> None:
    proved = BROKEN.replace("{ }", "{ Bad(); x := 0; }")
    assert judge(BROKEN, proved).rule == "vacuous"
    assert judge(BROKEN, BROKEN.replace("{ }", "{ x := 4; }")).outcome == "passed"
    monkeypatch.setattr(judge.verifier, "vacuity", False)
    assert judge(BROKEN, proved).outcome == "passed", "only what the log leaves out is probed"


def test_false_before_every_return_is_refused(judge: Judge) -> None:
    body = "{ Bad(); if * { return 0; } else { return 1; } }"
    assert judge(BROKEN, BROKEN.replace("{ }", body)).rule == "vacuous"
    assert judge(BROKEN, BROKEN.replace("{ }", "{ if * { return 4; } else { return 5; } }")).outcome == "passed"


@pytest.mark.parametrize(
    "given",
    [
        "lemma L(x: int) requires x > 3 requires x < 2 ensures x == 9 { }",
        "lemma L(x: int) requires x * x == 2 ensures false { if x >= 2 { assert x * x >= 4; } assert x < 2; }",
        "method M(x: int) returns (y: int) requires x != x ensures y == 3 { y := 4; }",
    ],
)
def test_a_contract_that_comes_to_false_is_the_given_programs_own(judge: Judge, given: str) -> None:
    assert judge(given, given + "// as given").outcome == "passed"


def test_a_probe_that_reaches_a_limit_is_repeated_and_its_verdict_is_not_remembered(judge: Judge, monkeypatch) -> None:
    assert judge(GIVEN, DONE + "// first").outcome == "passed"
    (runner,), real, ended = judge.verifier._all, judge.verifier._all[0].run, []

    def run(text: str, extra: list[str], limits: RunLimits, may_prove: object) -> ToolRun:
        if "/errorLimit:1" not in extra or len(ended) == 2:
            return real(text, extra, limits, may_prove)
        ended.append(limits.cpu_s)
        return ToolRun("cpu")

    monkeypatch.setattr(runner, "run", run)
    first, second = (judge(GIVEN, DONE + "// probed anew") for _ in range(2))
    assert (first.outcome, first.bucket, ended) == ("failed", "timeout", [20, 60])
    assert (second.outcome, second.cached) == ("passed", False)
