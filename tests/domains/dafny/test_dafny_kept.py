"""Code that a candidate has to keep: only annotations may be added, whatever their names and places."""

import pytest
from dafny_judge import Judge, of_dafny, told

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.tool import Tool

HEAD = "method Twice(n: nat) returns (r: nat)\n  ensures r == 2 * n\n"
BODY = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}\n"
PROVED = BODY.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")
HELPERS = """
lemma Fine() { }
method Seven(a: array<int>) returns (q: int) requires a.Length > 0 modifies a ensures a[0] == 7 { a[0] := 7; q := 7; }
"""
SEVEN = HELPERS + "method Do(a: array<int>) returns (r: int) requires a.Length > 0 modifies a ensures a[0] == 7\n"
FACTS = """
predicate P(i: int) { i >= 0 && Own(i) == i }
function {:opaque} Own(i: int): int { i }
lemma Fact(i: int) requires i >= 0 ensures P(i) { reveal_Own(); }
method Do(n: nat) returns (r: nat) ensures r >= Own(n) ensures forall i :: 0 <= i < n ==> P(i)
"""
SHORT = "{ r := 0; if n > 0 { var i := 1; } }"

DOWN = "method Down(n: nat) returns (r: int)\n  ensures r >= 0\n"
FALLS = "{ r := 0; var i := 0; while i < n { i := i + 1; r := r - 1; } }"
OWN = "{ var q := 0; var i := 0; while i < n { i := i + 1; q := q - 1; } r := q; }"
ONE = "method One() returns (k: int) { k := -1; }\n"
BOTH = FALLS.replace("i := i + 1; r := r - 1;", "i, r := i + 1, r - 1;")
CHOSEN = FALLS.replace("r := r - 1;", "r :| r == -1;")
TAKEN = FALLS.replace("r := r - 1;", "r := One();")


def hidden(body: str, ghost: str, name: str = "r") -> str:
    """The body whose loop gives values to a ghost variable in place of another of that name."""
    return body.replace("while i < n {", f"while i < n invariant {name} >= 0 {{ {ghost}")


CHEATS = {
    "neutralised by a second ghost": (DOWN, FALLS, hidden(FALLS, "ghost var u, r := 0, 0;")),
    "neutralised by a ghost behind a type": (DOWN, FALLS, hidden(FALLS, "ghost var u: map<int, int>, r := map[], 0;")),
    "neutralised by a ghost with an attribute": (DOWN, FALLS, hidden(FALLS, "ghost var {:trigger} r := 0;")),
    "neutralised by a ghost of a pattern": (DOWN, FALLS, hidden(FALLS, "ghost var (u, r) := (0, 0);")),
    "neutralised by a ghost of another variable's name": (DOWN, OWN, hidden(OWN, "ghost var q := 0;", "q")),
    "neutralised in an assignment of two": (DOWN, BOTH, hidden(BOTH, "ghost var r := 0;")),
    "neutralised in a choice": (DOWN, CHOSEN, hidden(CHOSEN, "ghost var r := 0;")),
    "neutralised where a result is taken": (ONE + DOWN, TAKEN, hidden(TAKEN, "ghost var r := 0;")),
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
    "method called by the name of a lemma in a datatype": (
        SEVEN.replace("returns (q: int)", ""),
        "{ }",
        "{ Seven(a); }\ndatatype D = D { lemma Seven() { } }",
    ),
}
"""(hole, kept body, body of the candidate): each candidate is proved, by code that differs from the kept code."""


def rule(kept: str, candidate: str, hole: str = HEAD) -> str | None:
    violation, _ = guards.check(read_declarations(hole), candidate, "specification", keep=read_declarations(kept))
    return violation and violation.rule


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_other_code_is_refused_however_it_proves(judge: Judge, name: str) -> None:
    hole, kept, body = CHEATS[name]
    assert judge(hole, hole + body).outcome == "passed"
    assert told(judge(hole, hole + body, keep=hole + kept)) == "program-changed"


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
        (FACTS, "{ r := n; }", "{ r := n; reveal_Own(); forall i | 0 <= i < n ensures P(i) { Fact(i); } }", "passed"),
    ],
)
def test_what_an_annotation_comes_to(judge: Judge, hole: str, kept: str, body: str, wanted: str) -> None:
    assert told(judge(hole, hole + body, keep=hole + kept)) == wanted


def test_the_specification_is_the_holes(judge: Judge) -> None:
    weaker = HEAD.replace("ensures r == 2 * n", "")
    assert told(judge(HEAD, weaker + BODY, keep=weaker + BODY)) == "spec-changed"
    assert told(judge(HEAD, HEAD + "{ assume r == 2 * n; }", keep=HEAD + "{ assume r == 2 * n; }")) == "assume"


def test_the_code_to_keep_is_part_of_what_is_remembered(judge: Judge) -> None:
    kept = [HEAD + BODY, HEAD + "{ r := 2 * n; }", None]
    verdicts = [judge(HEAD, HEAD + PROVED + "// once", keep=one) for one in kept for _ in range(2)]
    assert [told(one) for one in verdicts] == ["passed"] * 2 + ["program-changed"] * 2 + ["passed"] * 2
    assert [one.cached for one in verdicts] == [False, True] * 3


@pytest.mark.parametrize("body", ["{ r := 2 * n; } }", "{ r := (2 * n; }", "{ r := 2 * n;\n#if X\n#endif\n}"])
def test_what_is_no_code_is_not_mended(judge: Judge, body: str) -> None:
    assert told(judge(HEAD, HEAD + "{ r := 2 * n; }", keep=HEAD + body)) == "program-changed"
    assert told(judge(HEAD, HEAD + "{ r := 2 * n }", keep=HEAD + body)) == "parse"


def test_a_plain_command_line_says_the_same(dafny: Tool) -> None:
    with of_dafny(warm=False) as verifier:
        judge = Judge(verifier)
        bodies = ["{ Nothing(n); }", "{ r := 2 *; }", "{ r := 2 * n; }", BODY]
        assert [told(judge(HEAD, HEAD + body, keep=HEAD + "{ }")) for body in bodies] == [
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


@pytest.mark.parametrize(
    "more",
    [
        "ghost var lo, hi := 0, n; hi := n;",
        "ghost var m: map<int, int>, g := map[], 0; g, m := 3, m;",
        "ghost var g: int; g :| g == r;",
        "ghost var g, h := 0, 1; g, h := h, g;",
        "reveal_Own();",
    ],
)
def test_annotations_of_these_forms_are_no_code(more: str) -> None:
    assert rule(HEAD + BODY, HEAD + PROVED.replace("var i := 0;", f"var i := 0; {more}")) is None


@pytest.mark.parametrize("name", CHEATS)
def test_other_code_is_refused_by_its_tokens(name: str) -> None:
    hole, kept, body = CHEATS[name]
    assert rule(hole + kept, hole + body, hole) == "program-changed"


@pytest.mark.parametrize(
    "more",
    [
        "forall i | 0 <= i < n { a[i] := 0; }",
        "forall i | 0 <= i < n { Fact(i); a[i] := 0; }",
        "ghost var g := 0; g, r := 1, 1;",
        "ghost var g := 0; r := g;",
        "r.reveal_Own(1).x();",
    ],
)
def test_what_only_looks_like_an_annotation_is_code(more: str) -> None:
    given = FACTS + "{ r := n; }"
    assert rule(given, given.replace("r := n;", f"r := n; {more}"), FACTS) == "program-changed"


def test_a_method_named_like_a_reveal_is_code() -> None:
    hole = "method reveal_It() { }\n" + HEAD
    assert (
        rule(hole + BODY, hole + PROVED.replace("i := i + 1;", "i := i + 1; reveal_It();"), hole) == "program-changed"
    )


def test_a_ghost_variable_is_seen_in_the_blocks_within_its_own() -> None:
    body = PROVED.replace("var i := 0;", "var i := 0; ghost var g := i;").replace("i := i + 1;", "i := i + 1; g := i;")
    assert rule(HEAD + BODY, HEAD + body) is None
    assert rule(HEAD + BODY, HEAD + body.replace("ghost var g := i;", "{ ghost var g := i; }")) == "program-changed"
