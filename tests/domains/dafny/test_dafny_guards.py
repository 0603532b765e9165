"""The guards alone, without the tool: the rule against each way around a proof."""

import pytest

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import body_violation, read_declarations

GIVEN = """
predicate P(x: int) { x > 3 }
method M(x: int) returns (r: int) requires x > 0 ensures P(r) { r := x; }
"""


def rule(candidate: str, given: str = GIVEN, protect: str = "specification", holes: bool = True) -> str | None:
    violation, _ = guards.check(read_declarations(given), candidate, protect, holes)
    return violation and violation.rule


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("ensures P(r)", "", "spec-changed"),
        ("ensures P(r)", "ensures P(r) || true", "spec-changed"),
        ("requires x > 0", "requires x > 0 requires false", "spec-changed"),
        ("requires x > 0", "", "spec-changed"),
        ("{ x > 3 }", "{ true }", "spec-changed"),
        ("{ r := x; }", "", "no-body"),
        ("{ x > 3 }", "", "no-body"),
        ("method M", "method N", "spec-removed"),
        ("method M", "ghost method M", "spec-changed"),
        ("r := x;", "assume P(r);", "assume"),
        ("r := x;", "expect P(r);", "expect"),
        ("r := x;", "match x { case 1 => expect false; case _ => expect false; }", "expect"),
        ("r := x;", "label Q: expect false;", "expect"),
        ("r := x;", "expect (P(r));", "expect"),
        ("r := x;", "expect(P(r));", "expect"),
        ("r := x;", 'if x > 3 { r := x; } else { expect (false), "no"; }', "expect"),
        ("r := x;", "while true invariant P(r)", "no-body"),
        ("r := x;", "while true invariant P(r) if true { }", "no-body"),
        ("r := x;", "forall y: int ensures P(y);", "no-body"),
        ("{ r := x; }", "decreases * { r := x; }", "decreases-star"),
        ("method M", "method {:verify false} M", "verify-false"),
        ("method M", "method {:extern} M", "extern"),
        ("method M", "method {:axiom} M", "axiom"),
        ("method M", "method {:timeLimit 4 + 5} M", "attribute"),
        ("method M", "method {:verify true, false} M", "verify-false"),
        ("r := x;", "...;", "refinement"),
    ],
)
def test_change_breaks_its_rule(old: str, new: str, wanted: str) -> None:
    assert old in GIVEN and rule(GIVEN.replace(old, new)) == wanted


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("lemma L() ensures false", "no-body"),
        ("lemma {:axiom} L() ensures false { }", "axiom"),
        ("function F(): int ensures false", "no-body"),
        ("datatype D = D { lemma L() ensures false }", "no-body"),
        ("type P = int", "spec-shadowed"),
        ("datatype D = P", "spec-shadowed"),
        ("lemma L() ensures false { L(); } lemma K() decreases * { }", "decreases-star"),
        ("lemma L() { assume false; }", "assume"),
        ("function F(): int { assume false; 3 }", "assume"),
    ],
)
def test_addition_breaks_its_rule(more: str, wanted: str) -> None:
    assert rule(GIVEN + more) == wanted


@pytest.mark.parametrize(
    "more",
    [
        "lemma L(x: int) requires false ensures P(x) { }",
        "function method F(x: int): int { x }",
        "ghost method G() { calc { 1; == 1; } }",
        "datatype D = Left | Right(x: int)",
        "datatype D = D { predicate P(x: int) { true } }",
        "lemma {:verify true} L() { }",
    ],
)
def test_additions_with_bodies_are_free(more: str) -> None:
    assert rule(GIVEN + more) is None


def test_what_the_given_program_assumes_is_allowed_there_and_as_often() -> None:
    given = GIVEN.replace("r := x;", "assume x > 3; r := x;")
    assert rule(given, given) is None
    assert rule(given.replace("assume x > 3;", "assume x > 3; assume x > 3;"), given) == "assume"
    assert rule(given.replace("x > 3;", "x > 4;"), given) == "assume"
    moved = given.replace("assume x > 3;", "") + "lemma L() { assume x > 3; }"
    assert rule(moved, given) == "assume"


@pytest.mark.parametrize("taken", ["var x :| x;", "var x: int :| x", "var x :|"])
def test_choices_that_are_cut_short_are_read(taken: str) -> None:
    assert rule(f"method M() {{ {taken} }}", "method M() { }") is not None


def test_the_loops_of_a_method_that_need_not_end_need_not_end_if_its_code_is_kept() -> None:
    given = "method M() decreases * { var i := 0; while i != 7 { i := i + 2; } }"
    proved = given.replace("7 {", "7 decreases * {")
    assert rule(proved, given, "program") is None
    assert rule(proved, given) == "decreases-star", "a body of one's own may run forever"
    kept, _ = guards.check(
        read_declarations("method M() decreases *"), proved, "specification", keep=read_declarations(given)
    )
    assert kept is None
    ends = "method M() { var i := 0; while i != 7 { i := i + 2; } }"
    assert rule(ends.replace("7 {", "7 decreases * {"), ends, "program") == "decreases-star"


def test_a_hole_must_be_filled_unless_other_code_builds_on_it() -> None:
    hole = "method M() returns (r: int) ensures r > 3"
    assert rule(hole, hole) == "hole" and rule(hole, hole, holes=False) is None
    assert rule(hole, hole, "program") is None, "a body is no annotation"
    assert rule(hole + " { r := 4; }", hole) is None
    used = hole + " method N() { var x := M(); }"
    assert rule(used, used) is None
    tried = hole + " method Main() { var x := M(); }"
    assert rule(tried, tried) == "hole"


def test_trait_members_and_axioms_are_no_holes() -> None:
    given = "trait T { method M() ensures false } lemma {:axiom} L() ensures false"
    assert rule(given, given) is None


def test_a_promise_may_be_added_to_what_is_proved_alone() -> None:
    assert rule(GIVEN.replace("ensures P(r)", "ensures r > 0 ensures P(r)")) is None
    axiom = "lemma {:axiom} L() ensures true"
    assert rule(axiom + " ensures false", axiom) == "spec-changed"


def test_program_may_change_only_where_the_specification_is_protected() -> None:
    other = GIVEN.replace("r := x;", "r := 4;")
    assert rule(other) is None and rule(other, protect="program") == "program-changed"


@pytest.mark.parametrize(
    "body",
    [
        "assert x > 0; r := x;",
        "ghost var g := x; r := x; calc { g; == r; } forall y: int ensures y == y { }",
        "r := x; L(x); assert P(r) by { L(x); }",
        "label Here: r := x; reveal P();",
    ],
)
def test_annotations_change_no_program(body: str) -> None:
    assert rule(GIVEN.replace("r := x;", body) + "lemma L(x: int) { }", protect="program") is None


def test_loop_clauses_change_no_program() -> None:
    given = GIVEN.replace("r := x;", "while r < x { r := r + 1; }")
    done = given.replace("r < x {", "r < x invariant r <= x decreases x - r {")
    assert rule(done, given, protect="program") is None
    assert rule(done.replace("r + 1", "r + 2"), given, protect="program") == "program-changed"


def test_an_assert_in_a_function_changes_no_meaning() -> None:
    assert rule(GIVEN.replace("{ x > 3 }", "{ assert x == x; L(x); x > 3 }") + "lemma L(x: int) { }") is None


def test_files_are_refused_before_anything_parses_them() -> None:
    early = guards.before_parsing(GIVEN, 'include "/etc/passwd"\n' + GIVEN)
    assert early is not None and early.rule == "include"
    assert guards.before_parsing('include "a.dfy"', 'include "a.dfy"') is None


HEAD = "method Twice(n: nat) returns (r: nat)\n  ensures r == 2 * n\n"
BODY = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}\n"
PROVED = BODY.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")


@pytest.mark.parametrize(
    "body", ["{ assume false; }", "{ r := 0; assume r == 2 * n; }", "{ while true { assume false; } }"]
)
def test_a_body_that_assumes_is_the_writers_violation(body: str) -> None:
    violation = body_violation(HEAD, HEAD + body)
    assert violation is not None and violation.rule == "assume"


@pytest.mark.parametrize(
    "body",
    ["{ } lemma {:axiom} L() ensures false", "{ }\nmethod {:extern} E() ensures false", "{ } lemma L() ensures false"],
)
def test_a_body_that_leaves_its_braces_is_the_writers_violation(body: str) -> None:
    assert body_violation(HEAD, HEAD + body) is not None


@pytest.mark.parametrize("body", [BODY, PROVED, "{ r := n + n; }", "{ }", "{ r := 2 *; }", "{ r := Nothing(n); }"])
def test_a_plain_body_breaks_no_rule(body: str) -> None:
    assert body_violation(HEAD, HEAD + body) is None
