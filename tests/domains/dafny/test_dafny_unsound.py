"""New text with which Dafny 4 reports a proof without one is refused; the given program may contain anything."""

import pytest

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.soundness import INSTEAD, attribute_of

HEAD = "method M(c: Cell, s: set<int>) returns (r: int) ensures r > 3\n"
TYPES = "class Cell { var value: int }\n"
GIVEN = TYPES + HEAD + "{ r := 4; }\n"


def rule(candidate: str, given: str = GIVEN) -> str | None:
    violation, _ = guards.check(read_declarations(given), candidate, "specification", holes=False)
    return violation and violation.rule


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("class C { }", "declaration"),
        ("trait T { }", "declaration"),
        ("iterator I() yields (y: int) { }", "declaration"),
        ("codatatype S = C(tail: S)", "declaration"),
        ("least predicate P(x: int) { P(x) }", "declaration"),
        ("greatest lemma L() { }", "declaration"),
        ("inductive predicate P(x: int) { P(x) }", "declaration"),
        ("copredicate P(x: int) { P(x) }", "declaration"),
        ("colemma L() { }", "declaration"),
        ("twostate predicate P(c: Cell) { true }", "declaration"),
        ("twostate lemma L(c: Cell) { }", "declaration"),
        ("module N { lemma L() { } }", "declaration"),
        ("abstract module N { }", "declaration"),
        ("module N refines Q { }", "declaration"),
        ("import opened N = Q", "declaration"),
        ("export provides M", "declaration"),
        ("datatype T = T(m: imap<int, T>) | N", "declaration"),
        ("datatype T = T(f: int -> int)", "declaration"),
        ("datatype T extends Q = T", "declaration"),
        ("datatype B<!T> = B(v: T)", "declaration"),
        ("datatype B<T> = B(v: array<T>)", "declaration"),
        ("newtype N = x: int | 0 <= x < 9", "declaration"),
        ("type N = x: int | 0 <= x < 9", "declaration"),
        ("type N", "declaration"),
        ("const f: int -> int := x => x", "declaration"),
        ("datatype D = D { const x: int := 3 }", "declaration"),
        ("datatype D = D { lemma L() ensures false }", "no-body"),
        ("lemma L(o: ORDINAL) { }", "unsound"),
        ("function F(): int ensures false", "no-body"),
        ("@Axiom lemma L() ensures false", "axiom"),
        ("@ Axiom() lemma L() ensures false { }", "axiom"),
        ("@VerifyOnly lemma L() { }", "verify-false"),
        ("@AssumeCrossModuleTermination function F(): int { 3 }", "attribute"),
        ('@Options("--function-syntax:3") function F(): int { 3 }', "attribute"),
        ("@A.Axiom lemma L() { }", "attribute"),
        ("lemma {:verify false} L() { }", "verify-false"),
        ("lemma L() { assert {:only} true; }", "verify-false"),
        ('lemma L() { assert {:isolate "paths"} true; }', "verify-false"),
        ('lemma {:isolate_assertions "paths"} L() { }', "attribute"),
        ("lemma L() { assert forall n: nat {:induction} :: n >= 0; }", "attribute"),
        ("lemma {:unknown} L() { }", "attribute"),
        ("lemma L(d: set<int>) { var t := map x | x in d :: x; }", "map-comprehension"),
        ("lemma L(d: iset<int>) { var t := imap x: int | x in d :: x := 1; }", "map-comprehension"),
        ("function F(a: array<int>): int reads * { 3 }", "reads-star"),
        (
            "method W(a: array<int>, s: set<(nat, nat)>) { forall t: (nat, nat) | t.0 < 1 && t in s { a[t.0] := 0; } }",
            "forall-index",
        ),
        ("method W(a: array<int>) modifies a { forall i | 0 <= F(i) < a.Length { a[i] := 0; } }", "forall-index"),
        ("method W(a: array<int>, s: seq<int>) modifies a { forall i <- s { a[0] := 0; } }", "forall-index"),
        ("lemma L() { var x: int :| assume {:axiom} x > x; }", "assume"),
        ("method N() { var x :- assume {:axiom} F(); }", "assume"),
        ("method N() { var x :- expect F(); }", "expect"),
        ("method N() { for i := 0 to 3 invariant false }", "no-body"),
        ("method N() { for i := 0 to * invariant false assert true; }", "no-body"),
        ("lemma L() { forall x | x in (set y | y in {1} :: y) ensures false; }", "no-body"),
        ("lemma L() { forall x: int ensures false }", "no-body"),
        ("lemma L() { forall x | x > 3 { K(x); } }", "forall-ensures"),
        ("lemma L() { forall x <- {3} { K(n := x); } }", "forall-ensures"),
        ("lemma L() { forall x: Even { K(x); } }", "forall-ensures"),
        ("lemma L() { forall x: int, y { K(x); } }", "forall-ensures"),
        ("lemma L() { forall x: nat | F(x) > 3 { K(x); } }", "forall-ensures"),
        ("function F(): (r: int) { var r :| r > 3; r }", "nondeterminism"),
        ("method N() decreases * { }", "decreases-star"),
        ("method N() { while true decreases * { } }", "decreases-star"),
    ],
)
def test_a_declaration_that_may_not_be_added(more: str, wanted: str) -> None:
    assert rule(GIVEN + more) == wanted


@pytest.mark.parametrize(
    "body",
    [
        "r :| r > 3;",
        "var x :| x > 3; r := x;",
        "var x: int :| x in s && x > 3; r := x;",
        "r :| r in s && r > 3;",
        "r :| 4 in s && r > 3;",
        "if x: int :| x > 3 { r := x; }",
        "r := *;",
        "var x: int := *;",
        "var x, y := 3, *;",
        "if * { r := 4; } else { r := 5; }",
        "while (*) { r := 4; }",
        "var f := (n: int) => var x :| x > n; x; r := f(3);",
        "return *;",
        "c.value := *;",
    ],
)
def test_code_that_chooses_a_value(body: str) -> None:
    chosen = TYPES + HEAD + f"{{ {body} }}\n"
    assert rule(chosen) == rule(chosen, TYPES + HEAD) == "nondeterminism"
    assert rule(chosen, chosen) is None
    assert rule(chosen.replace(body, f"{body} {body}"), chosen) == "nondeterminism"


SIX = "lemma Six<T>() returns (k: int) ensures k == 6 { k := 6; }\n"


@pytest.mark.parametrize(
    "body",
    [
        "calc { a[0]; == { a[0] := Six(); } 6; }",
        "assert c.value == 6 by { c.value := Six<int>(); }",
        "if g > 3 { a[0], r := Six(); }",
        "label Q: a[f(3)] := M.Six() by { }",
        "match r { case 3 => c.value := Six(); }",
    ],
)
def test_results_of_lemmas_are_kept_out_of_the_heap(body: str) -> None:
    assert rule(GIVEN.replace("r := 4;", f"{body} r := 4;") + SIX) == "ghost-result"


@pytest.mark.parametrize(
    "body",
    ["ghost var k := Six();", "a[0] := six(3); Six();", "c.value := 3; var d := m[3 := 4];", "a[i] := (Six(); 3) + 3;"],
)
def test_other_assignments_are_free(body: str) -> None:
    assert rule(GIVEN.replace("r := 4;", f"{body} r := 4;") + SIX) is None


@pytest.mark.parametrize(
    "body",
    [
        "r := 4 * 1;",
        "ghost var x :| x > 3; r := 4;",
        "ghost var x; x := *; r := 4;",
        "assert true by { var x: int :| x > 3; } r := 4;",
        "var x :| x in s; r := 4;",
        "var x: int :| x in c.values; r := 4;",
        "r :| r in c.values; r := 4;",
        "for i := 0 to 3 invariant r >= 0 { r := r + i; } r := 4;",
        "forall i | 0 <= i < 3 ensures i < 4 { L(i); } r := 4;",
        "forall i | 0 <= i < a.Length { a[i] := f(i); } r := 4;",
        "r := 4; assert forall x <- s :: x in (set y | y in s :: y);",
        "reveal *; hide F; r := 4;",
        "opaque ensures r > 3 { r := 4; }",
        "label Q: for i := 3 downto 0 { continue Q; } r := 4;",
    ],
)
def test_bodies_that_people_write(body: str) -> None:
    assert rule(TYPES + HEAD + f"{{ {body} }}\n", TYPES + HEAD) is None


@pytest.mark.parametrize(
    "more",
    [
        "ghost function F(n: nat): nat { n } by method { return n; }".removeprefix("ghost "),
        "ghost function F(s: set<int>): int requires s != {} { var x :| x in s; x }",
        "@IsolateAssertions @Fuel(2) opaque predicate P(x: int) { x > 3 }",
        "lemma {:induction false} L(n: nat) { }",
        "lemma L() { forall n: nat { K(n); } forall n: nat, m: int { calc { n + m; m + n; } } }",
        "@Induction(n) lemma L(n: nat) { }",
        "lemma {:vcs_split_on_every_assert} L() { assert {:split_here} true; }",
        "datatype Option<T> = None | Some(value: T) { predicate IsFailure() { None? } }",
        "type Row = seq<int>",
        "const MOD := 1_000_000_007",
        "method W(a: array<int>) modifies a { forall i: nat | i < a.Length && a[i] > 0 { a[i] := G(i); } }",
        "lemma L(m: map<int, int>) { var n: map<int, int> := m[1 := 2] - {1}; }",
        "method N(nameonly x: int := 3) returns (y: real) { y := 1.5e3; y := 5.; }",
    ],
)
def test_declarations_that_people_write(more: str) -> None:
    assert rule(GIVEN + more) is None


def test_reading_everything_is_no_risk_without_objects_and_arrays() -> None:
    given = "function F(n: int): int reads * { n }\nmethod M() returns (r: int) ensures r == G(3)\n"
    more = "{ r := 3; }\nfunction G(n: int): int reads * { F(n) }\n"
    assert rule(given + more, given) is None
    for heap in ("method N(a: array<int>) { }", "method N(o: object?) { }", "method N() { var a := new int[3]; }"):
        assert rule(heap + given + more, heap + given) == "reads-star"


def test_a_member_of_a_given_class_is_code_and_no_field() -> None:
    assert rule(GIVEN.replace("value: int", "value: int predicate P() { true }")) is None
    for member in ("var seen: int", "constructor () { }", "const size: int := 3"):
        assert rule(GIVEN.replace("value: int", f"value: int {member}")) == "declaration"


def test_functions_that_the_given_program_only_calls_may_be_defined() -> None:
    given = TYPES + HEAD.replace("r > 3", "r > abs(-3)")
    done = given + "{ r := 4; }\n"
    assert rule(done + "function abs(x: int): int { if x < 0 then -x else x }", given) is None
    assert rule(done + "function abs(x: int): int", given) is None
    for more in ("function abs(x: int): (r: int) ensures r < 3", "function abs(x: int): Cell"):
        assert rule(done + more, given) == "no-body"
    assert rule(done + "const abs: int := 3", given) == "spec-shadowed"
    assert rule(GIVEN + "function M(x: int): int { 3 }") == "spec-shadowed"


def test_a_lone_function_may_be_written_unless_methods_speak_of_it() -> None:
    lone = "function F(n: int): int\n"
    about = "lemma Positive(n: int) ensures F(n) > 0 { }\n"
    assert rule(lone + "{ 3 }" + about, lone + about) is None
    method = "method M(n: int) returns (r: int) ensures r == F(n) { r := 3; }"
    assert rule(lone + "{ 3 }" + method, lone + method) == "spec-changed"


def test_each_refusal_says_what_to_write_instead() -> None:
    violation, _ = guards.check(read_declarations(GIVEN), GIVEN + "class C { }", "specification")
    assert violation is not None and violation.log.endswith(f"Instead, {INSTEAD['declaration']}.")


@pytest.mark.parametrize("words", ["{ : axiom }", "@ Axiom", "@ ( Axiom )", "{ : }", "{ : \x00 }"])
def test_no_attribute_is_harmless_by_its_form(words: str) -> None:
    assert attribute_of(words.split()) is not None
