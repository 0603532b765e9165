"""The verifier: verdicts, scores, limits, the prover's resource count, the options of each level, and the acceptance of programs
that Dafny calls proved: callables that it does not report, and bodies and lemmas that prove too much."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from dafny_judge import Judge, of_dafny, told
from thinning import thinned

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.package import VERSION
from rlvr_exp.domains.dafny.problem import ROLES
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.tool import REFRESH, RunLimits, Tool, ToolRun, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier, contract_probe, probed
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict

GIVEN = """
method Up(x: int) returns (y: int) ensures y > x { y := x; }
method Down(x: int) returns (y: int) ensures y < x { y := x - 1; }
"""
DONE = GIVEN.replace("y := x;", "y := x + 1;")
TRIANGLE = """method S(n: nat) returns (s: nat) ensures 2 * s == n * (n + 1)
{ s := 0; var i := 0; while i < n invariant 0 <= i <= n invariant 2 * s == i * (i + 1) { i := i + 1; s := s + i; } }
"""
"""True, and proved within 100,000 of the prover's resources."""
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


@pytest.mark.parametrize("rlimit", thinned([1, 1000, 4000]))
def test_running_out_of_the_resource_count_never_passes(dafny: Tool, rlimit: int) -> None:
    with of_dafny(rlimit=rlimit) as verifier:
        verdict = Judge(verifier)(TRIANGLE, TRIANGLE)
        assert verdict.outcome == "failed", verdict


def test_running_out_of_resources_is_a_bucket_of_its_own_and_remembered(dafny: Tool) -> None:
    with of_dafny(rlimit=4000) as verifier:
        verdicts = [Judge(verifier)(TRIANGLE, TRIANGLE) for _ in range(2)]
        assert [(verdict.bucket, verdict.cached) for verdict in verdicts] == [
            ("out_of_resource", False),
            ("out_of_resource", True),
        ]


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


def test_missing_and_old_dafnys_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such program"):
        find(str(tmp_path / "dafny"))
    for output in ("4.3.0+ab", "2.3.0", "Something 1.0", ""):
        old = tmp_path / f"old{len(output)}"
        old.write_text(f"#!/bin/sh\necho '{output}'\n")
        old.chmod(0o755)
        with pytest.raises(InputError, match="too old") as fault:
            find(str(old))
        assert "4.4 or later" in str(fault.value)


def test_a_recent_dafny_on_the_path_comes_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, own in (("4.9.1", True), ("2.3.0", False)):
        program = tmp_path / version / "dafny"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho {version}+0\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        find.cache_clear()
        try:
            found = find()
        finally:
            find.cache_clear()
        assert (found.command[0] == str(program)) is own
        assert found.version == (version if own else VERSION)


def test_manifest_names_the_tool_and_the_prover(judge: Judge) -> None:
    assert judge.verifier.tool()["dafny"][0].isdigit()


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
SUM2 = """function Sum2(n: nat): nat
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


# Levels.

OPTION = """datatype Option<T> = None | Some(value: T)
method First(s: seq<int>) returns (o: Option<nat>) ensures o.Some? ==> o.value >= 0
"""
MIXED = OPTION + "{ o := if |s| > 0 && s[0] < 0 then Some(s[0]) else Some(-1); }"
INDUCTIVE = "function Sum(n: nat): nat { if n == 0 then 0 else n + Sum(n - 1) }\n"
GAUSS = "lemma Gauss(n: nat) ensures 2 * Sum(n) == n * (n + 1) { }\n"


def test_a_program_must_be_proved_with_both_resolvers(judge: Judge) -> None:
    assert judge(OPTION, MIXED).outcome == "failed"


def test_a_further_proof_may_fail_only_in_what_the_candidate_left_as_it_is(judge: Judge, monkeypatch) -> None:
    (runner,), real = judge.verifier._all, judge.verifier._all[0].run

    def run(text: str, options: tuple[str, ...], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        found = real(text, options, limits, may_prove)
        if options != REFRESH:
            return found
        return dataclasses.replace(found, failed=Counter(["Down" if "kept" in text else "Up"]))

    monkeypatch.setattr(runner, "run", run)
    kept = DONE.replace("method Up", "lemma kept() { }\nmethod Up")
    assert judge(GIVEN, kept).outcome == "passed"
    assert judge(GIVEN, DONE + "\n").bucket == "verify"
    assert judge(DONE, DONE).bucket == "verify", (
        "a reference program that is checked is left as it is, and excused nothing"
    )


@pytest.mark.parametrize(("given_end", "wanted"), [("resolve", "passed"), ("stopped", "resolve")])
def test_options_count_unless_the_given_program_itself_does_not_resolve_with_them(
    judge: Judge, monkeypatch, given_end: str, wanted: str
) -> None:
    (runner,), real = judge.verifier._all, judge.verifier._all[0].run

    def run(text: str, options: tuple[str, ...], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        found = real(text, options, limits, may_prove)
        if options != REFRESH:
            return found
        return ToolRun("resolve" if may_prove() else given_end)

    monkeypatch.setattr(runner, "run", run)
    assert told(judge(GIVEN, DONE + f"lemma {given_end}() {{ }}")) == wanted
    calls = GIVEN + "method Use() ensures Missing(3) { assert Missing(3); }\n"
    text = DONE + calls[len(GIVEN) :] + f"predicate Missing(n: int) {{ n == 3 }} lemma {given_end}() {{ }}"
    assert told(judge(calls, text)) == "resolve", "the given program does not resolve by default either"


def test_lemmas_use_automatic_induction_by_the_level_of_the_task(judge: Judge) -> None:
    given = INDUCTIVE + GAUSS
    levels = (None, "strict", "refresh", "default")
    assert [told(judge(given, given, strength=level)) for level in levels] == ["passed", "verify", "passed", "passed"]
    assert told(judge(INDUCTIVE, given)) == "passed"
    calls = given.replace("ensures", "requires Sum(0) == 0 ensures")
    assert told(judge(INDUCTIVE, calls, strength="default")) == "verify", "an added lemma whose requirements call"


# Programs that Dafny calls proved.


def bodies(text: str, wanted: Callable[[str], bool] = lambda label: True) -> tuple[str, Counter[str]]:
    """The text with its bodies probed, and the labels."""
    return probed(text, wanted, lambda label: False)[:2]


def test_every_way_out_is_probed() -> None:
    text, labels = bodies("method M() { if * { return; } } iterator I() { while true { yield; } } lemma L() { }")
    assert labels == {"M": 1, "I": 1, "L": 1} and text.count("assert false;") == 5
    assert "{  assert false; return; }" in text and "assert false; yield;" in text


def test_only_wanted_bodies_are_probed_and_functions_never() -> None:
    text, labels = bodies("method M() { } method N() { } function F(): int { 3 }", lambda label: label == "N")
    assert labels == {"N": 1} and text.startswith("method M() { } method N() {  assert false; }")


def test_a_method_that_need_not_end_is_not_probed() -> None:
    assert not bodies("method M() decreases * { while true decreases * { } }")[1]


def test_a_contract_is_probed_without_the_body_and_written_where_there_is_none() -> None:
    text = contract_probe(
        "lemma L(x: int) requires x > 3 ensures x > 2; method M() ensures 1 > 2 { var y := 1; }", ["L", "M"]
    )
    assert "ensures x > 2;  { assume x > 2; assert false; }" in text
    assert text.endswith("assert false; }") and "var" not in text


def test_probe_stands_at_the_end_of_bodies_that_can_be_reached() -> None:
    text, names = bodies("method M() { x := 1; } method N() { return; } method O() decreases * { while true { } }")
    assert names == {"M": 1, "N": 1} and text.startswith("method M() { x := 1;  assert false; }")
    assert "method N() {  assert false; return;" in text and text.endswith("decreases * { while true { } }")


def test_false_at_the_end_of_a_body_is_refused_unless_the_option_is_off(judge: Judge, monkeypatch) -> None:
    proved = BROKEN.replace("{ }", "{ Bad(); x := 0; }")
    assert judge(BROKEN, proved).rule == "vacuous"
    assert judge(BROKEN, BROKEN.replace("{ }", "{ x := 4; }")).outcome == "passed"
    monkeypatch.setattr(judge.verifier, "vacuity", False)
    assert judge(BROKEN, proved).outcome == "passed", "only what the log leaves out is probed"


def test_a_contradictory_contract_is_excused_unless_a_function_of_the_candidate_makes_it_so(judge: Judge) -> None:
    given = "method M(x: int) returns (r: int) requires x > 3 && x < 2 ensures r == twice(x)\n"
    more = "{ r := twice(x); }\nfunction twice(x: int): int { x + x }\n"
    assert judge(given, given + more).outcome == "passed"
    given = given.replace("x > 3 && x < 2", "twice(x) == 1")
    assert judge(given, given + more).rule == "vacuous"
    given = given.replace("twice(x) == 1", "twice(x) == -1")
    natural = more.replace("): int { x + x", "): nat { x * x")
    assert judge(given, given + natural).rule == "vacuous", "the candidate chose a type without the given value"


def test_false_that_a_given_body_assumes_is_no_fault_of_the_candidate(judge: Judge) -> None:
    given = "method M() returns (x: int) ensures x > 3 {\nassume 1 == 2;\nx := 4; }\n"
    assert judge(given, given.replace("x := 4;", "assert 1 == 2; x := 4;")).outcome == "passed"
    honest = given.replace("1 == 2", "1 == 1") + "lemma {:axiom} Bad() ensures false\n"
    assert judge(honest, honest.replace("x := 4;", "Bad(); x := 4;")).rule == "vacuous"


def test_false_before_every_return_is_refused(judge: Judge) -> None:
    body = "{ Bad(); if 1 < 2 { return 0; } else { return 1; } }"
    assert judge(BROKEN, BROKEN.replace("{ }", body)).rule == "vacuous"
    assert judge(BROKEN, BROKEN.replace("{ }", "{ if 1 < 2 { return 4; } else { return 5; } }")).outcome == "passed"


_EMPTY = "type Empty = x: int | false witness *\nfunction Never(): bool requires false ensures false { false }\n"
_PROMISE = "lemma U(k: int) %sensures false\n"
_NEVER = "{ forall x: Empty ensures Never() { } assert Never(); }\n"


SEVEN = "method M(n: int) returns (m: int) ensures m == 7\n"


def test_a_promise_that_calls_its_function_is_proved(judge: Judge) -> None:
    more = "function F(n: int): int ensures var i := n + 1; F(n) == i { n + %s }\n"
    body = "{ m := F(6); if m != 7 { assert false; } }\n"
    assert judge(SEVEN, SEVEN + body + more % 1).outcome == "passed"
    wrong = SEVEN + body.replace("assert false", "assert F(6) == 7; assert F(6) == 8") + more % 2
    assert judge(SEVEN, wrong).bucket == "verify"


def test_no_proof_of_false_is_accepted(judge: Judge) -> None:
    given = _EMPTY + _PROMISE % ""
    assert judge(given, given + _NEVER).rule == "declaration"
    unused = BROKEN.replace("{ }", "{ x := 4; }") + "lemma U() ensures false { Bad(); }"
    assert judge(BROKEN, unused).rule == "vacuous"
    endless = "method Loop()\n  ensures false\n  decreases *\n"
    assert judge(endless, endless + "{ Loop(); }").outcome == "passed"


def test_all_text_counts_as_new_beside_a_proof_by_contradiction(judge: Judge) -> None:
    given = _EMPTY + _PROMISE % "requires k == 3 "
    assert judge(given, given + _NEVER).rule == "declaration"
    honest = _PROMISE % "requires k == k + 1 "
    assert judge(_EMPTY + honest, _EMPTY + honest + "{ }").rule == "declaration"
    assert judge(honest, honest + "{ }").outcome == "passed"


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


@pytest.mark.parametrize(
    "cheat",
    [
        "lemma Any(b: bool) ensures b { BAD }",
        "lemma Any(n: nat, b: bool) requires n > 2 ensures n > 1 && b { BAD }",
        "method Any(b: bool, n: int) returns (m: int, k: int) ensures m == n && b { m, k := n, n; BAD }",
        "ghost method Any<T>(t: T, b: bool) ensures b { BAD }",
        "function Any(b: bool): (n: int) ensures b { BADFUNCTION }",
    ],
)
def test_a_lemma_that_proves_whatever_it_is_asked_is_refused(judge: Judge, cheat: str) -> None:
    """The unsound step is one of the given program, whose contract is not the candidate's fault."""
    given = GIVEN + "lemma {:axiom} Wrong(b: bool) ensures b\nfunction {:axiom} Odd(b: bool): int ensures b\n"
    text = cheat.replace("BADFUNCTION", "Odd(b)").replace("BAD", "Wrong(b);")
    assert told(judge(given, given.replace("y := x;", "y := x + 1;") + text)) == "vacuous"


@pytest.mark.parametrize(
    "honest",
    [
        "lemma Id(b: bool) requires b ensures b { }",
        "lemma Either(b: bool) ensures b || !b { }",
        "lemma Both(b: bool, c: bool) requires b && c ensures c { }",
        "function Not(b: bool): (c: bool) ensures c == !b { !b }",
        "method Same(b: bool, n: int) returns (c: bool, m: int) ensures c == b { return b, n; }",
        "ghost method Larger<T>(s: seq<T>, t: T) ensures |s + [t]| > |s| { if t !in s { } }",
    ],
)
def test_lemmas_about_booleans_are_accepted(judge: Judge, honest: str) -> None:
    assert told(judge(GIVEN, DONE + honest)) == "passed"


def test_a_probe_that_reaches_a_limit_leaves_no_verdict_to_remember(judge: Judge, monkeypatch) -> None:
    assert judge(GIVEN, DONE + "// first").outcome == "passed"
    (runner,), real, ended = judge.verifier._all, judge.verifier._all[0].run, []

    def run(text: str, options: tuple[str, ...], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        if "assert false" not in text or len(ended) == 2:
            return real(text, options, limits, may_prove)
        ended.append(limits.wall_s)
        return ToolRun("wall")

    monkeypatch.setattr(runner, "run", run)
    first, second = (judge(GIVEN, DONE + "// probed anew") for _ in range(2))
    assert (first.outcome, first.bucket, ended) == ("failed", "timeout", [300, 600])
    assert (second.outcome, second.cached) == ("passed", False)
