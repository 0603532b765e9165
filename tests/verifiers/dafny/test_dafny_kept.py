"""Code that a candidate has to keep: only annotations may be added, whatever their names and places."""

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.declarations import read_declarations
from rlvr_exp.verifiers.dafny.tool import Tool
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier

HEAD = "method Twice(n: nat) returns (r: nat)\n  ensures r == 2 * n\n"
BODY = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}\n"
PROVED = BODY.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")
HELPERS = """
lemma Fine() { }
method Seven(a: array<int>) returns (q: int) requires a.Length > 0 modifies a ensures a[0] == 7 { a[0] := 7; }
"""
SEVEN = HELPERS + "method Do(a: array<int>) returns (r: int) requires a.Length > 0 modifies a ensures a[0] == 7\n"
SHORT = "{ r := 0; if n > 0 { var i := 1; } }"

CHEATS = {
    "statement changed": (HEAD, BODY, PROVED.replace("r := r + 2", "r := r + 1 + 1")),
    "statement added": (HEAD, BODY, PROVED.replace("var i := 0;", "var i := 0; r := 2 * n; return;")),
    "all written anew": (HEAD, BODY, "{ r := 2 * n; }"),
    "code in an empty body": (HEAD, "{ }", "{ r := 2 * n; }"),
    "code behind annotations in an empty body": (HEAD, "{ }", "{ assert true; r := 2 * n; }"),
    "assigned under the name of a ghost in a proof": (
        HEAD,
        "{ }",
        "{ assert true by { ghost var r := 0; } r := 2 * n; }",
    ),
    "assigned under the name of a ghost in a forall": (
        HEAD,
        "{ }",
        "{ forall i: int ensures true { ghost var r := 0; } r := 2 * n; }",
    ),
    "assigned under the name of a ghost in a block": (
        HEAD,
        SHORT,
        SHORT.replace("var i", "ghost var r := 1; var i").replace("} }", "} r := 2 * n; }"),
    ),
    "assigned under the name of another case's ghost": (
        HEAD,
        "{ r := 0; if { case n == 0 => case n != 0 => } }",
        "{ r := 0; if { case n == 0 => ghost var r := 1; case n != 0 => r := 2 * n; } }",
    ),
    "assigned where a variable hides the ghost": (
        HEAD,
        "{ { var g := 0; r := g; } }",
        "{ ghost var g := 1; { var g := 0; g := 2 * n; r := g; } }",
    ),
    "method called": (SEVEN, "{ }", "{ var q := Seven(a); }"),
    "method called for a ghost variable": (SEVEN, "{ }", "{ ghost var q := Seven(a); }"),
    "method called for a ghost variable that stands already": (SEVEN, "{ }", "{ ghost var q; q := Seven(a); }"),
    "method called by the name of a lemma in a module": (
        SEVEN.replace("returns (q: int)", ""),
        "{ }",
        "{ Seven(a); }\nmodule M { lemma Seven() { } }",
    ),
    "method called by the name of a lemma in a class": (
        SEVEN.replace("returns (q: int)", ""),
        "{ }",
        "{ Seven(a); }\nclass C { lemma Seven() { } }",
    ),
}
"""(hole, kept body, body of the candidate): each candidate is proved, by code that differs from the kept code."""


def rule(kept: str, candidate: str, hole: str = HEAD) -> str | None:
    violation, _ = guards.check(read_declarations(hole), candidate, "specification", keep=read_declarations(kept))
    return violation and violation.rule


@pytest.fixture(scope="module")
def verifier(dafny: Tool):
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        yield verifier


def ask(verifier: DafnyVerifier, hole: str, kept: str | None, candidate: str) -> Verdict:
    return verifier.verify([Request(DafnyProblem(hole, keep=kept), Candidate(candidate))])[0]


def told(verdict: Verdict) -> str:
    return verdict.bucket or verdict.rule or verdict.outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_other_code_is_refused_however_it_proves(verifier: DafnyVerifier, name: str) -> None:
    hole, kept, body = CHEATS[name]
    assert ask(verifier, hole, None, hole + body).outcome == "passed"
    assert told(ask(verifier, hole, hole + kept, hole + body)) == "program-changed"


@pytest.mark.parametrize(
    ("hole", "kept", "body", "wanted"),
    [
        (HEAD, BODY, PROVED, "passed"),
        (HEAD, BODY, BODY, "verify"),
        (HEAD, BODY, PROVED.replace("i := i + 1;", "i := i + 1; Nothing(i);"), "resolve"),
        (HEAD, "{ }", "{ Nothing(n); }", "resolve"),
        (HEAD, BODY, PROVED.replace("r := r + 2;", "r := r + Nothing(i);"), "resolve"),
        (HEAD, BODY, PROVED.replace("invariant i", "invariant i i"), "parse"),
        (HEAD, BODY, PROVED.replace("r := r + 2;", "r := r + 2"), "parse"),
        (HEAD, BODY, PROVED[:-2], "parse"),
        (SEVEN, "{ }", "{ Fine(); }", "verify"),
        (SEVEN, "{ r := Seven(a); }", "{ r := Seven(a); Fine(); ghost var g := a[0]; g := 3; }", "passed"),
        (SEVEN, "{ r := Seven(a); }", "{ r := Seven(a); r := Seven(a); }", "program-changed"),
        (HEAD, BODY, PROVED.replace("i := i + 1;", "i := i + 1; assume false;"), "assume"),
    ],
)
def test_what_an_annotation_comes_to(verifier: DafnyVerifier, hole: str, kept: str, body: str, wanted: str) -> None:
    assert told(ask(verifier, hole, hole + kept, hole + body)) == wanted


def test_the_specification_is_the_holes(verifier: DafnyVerifier) -> None:
    weaker = HEAD.replace("ensures r == 2 * n", "")
    assert told(ask(verifier, HEAD, weaker + BODY, weaker + BODY)) == "spec-changed"
    assert told(ask(verifier, HEAD, HEAD + "{ assume r == 2 * n; }", HEAD + "{ assume r == 2 * n; }")) == "assume"


def test_the_code_to_keep_is_part_of_what_is_remembered(verifier: DafnyVerifier) -> None:
    kept = [HEAD + BODY, HEAD + "{ r := 2 * n; }", None]
    verdicts = [ask(verifier, HEAD, one, HEAD + PROVED + "// once") for one in kept for _ in range(2)]
    assert [told(one) for one in verdicts] == ["passed"] * 2 + ["program-changed"] * 2 + ["passed"] * 2
    assert [one.cached for one in verdicts] == [False, True] * 3


@pytest.mark.parametrize("body", ["{ r := 2 * n; } }", "{ r := (2 * n; }", "{ r := 2 * n;\n#if X\n#endif\n}"])
def test_what_is_no_code_is_not_mended(verifier: DafnyVerifier, body: str) -> None:
    assert told(ask(verifier, HEAD, HEAD + body, HEAD + "{ r := 2 * n; }")) == "program-changed"
    assert told(ask(verifier, HEAD, HEAD + body, HEAD + "{ r := 2 * n }")) == "parse"


def test_a_plain_command_line_says_the_same(dafny: Tool) -> None:
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048, warm=False) as verifier:
        bodies = ["{ Nothing(n); }", "{ r := 2 *; }", "{ r := 2 * n; }", BODY]
        assert [told(ask(verifier, HEAD, HEAD + "{ }", HEAD + body)) for body in bodies] == [
            "resolve",
            "parse",
            "program-changed",
            "program-changed",
        ]


def test_what_has_no_code_to_keep_gets_none() -> None:
    open_one = "\nmethod Other()\n"
    assert rule(HEAD + BODY + open_one, HEAD + PROVED + open_one + "{ assert true; }") is None
    assert rule(HEAD + BODY + open_one, HEAD + PROVED + open_one + "{ print 1; }") == "program-changed"


def test_an_iterator_that_goes_on_runs() -> None:
    more = "class C { lemma MoveNext() { } }\n"
    assert rule(more + HEAD + "{ }", more + HEAD + "{ o.MoveNext(); }", more + HEAD) == "program-changed"


def test_a_method_of_the_kept_program_has_to_be_there() -> None:
    assert rule(HEAD + BODY + "method Other() { }", HEAD + PROVED) == "spec-removed"


@pytest.mark.parametrize("body", ["{ assert true; }", "{ forall i: int ensures i == i { } }", "{ label L: }"])
def test_an_empty_body_takes_annotations(body: str) -> None:
    assert rule(HEAD + "{ }", HEAD + body) is None


def test_a_ghost_variable_is_seen_in_the_blocks_within_its_own() -> None:
    body = PROVED.replace("var i := 0;", "var i := 0; ghost var g := i;").replace("i := i + 1;", "i := i + 1; g := i;")
    assert rule(HEAD + BODY, HEAD + body) is None
    assert rule(HEAD + BODY, HEAD + body.replace("ghost var g := i;", "{ ghost var g := i; }")) == "program-changed"
