"""Which new types, functions and statements are refused because Dafny 2.3 proves everything with them, and which are not."""

import pytest

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.soundness import type_faults
from rlvr_exp.domains.dafny.syntax import parse

GIVEN = "class Cell { var value: int } method M(c: Cell) returns (r: int) ensures r > 3 { r := 4; }\n"


def rule(candidate: str, given: str = GIVEN) -> str | None:
    violation, _ = guards.check(read_declarations(given), candidate, "specification", holes=False)
    return violation and violation.rule


@pytest.mark.parametrize(
    "more",
    [
        "datatype T = T(s: iset<T>)",
        "datatype T = Leaf | T(m: imap<int, T>)",
        "datatype T = T(s: (iset<T>, int))",
        "type S = iset<T> datatype T = T(s: S)",
        "datatype B<X> = B(s: iset<X>) datatype T = T(b: B<T>)",
        "datatype A = A(b: B) datatype B = B(s: iset<A>)",
        "module N { datatype T = T(s: iset<T>) }",
        "codatatype T = T(f: int -> T)",
        "class C { const f: C -> bool constructor () { } }",
        "class C { const f: C? -> bool constructor () { } }",
        "class C { const f: object -> bool constructor () { } }",
        "class G<X> { const v: X -> bool constructor () { } } datatype E = E(g: G<E>)",
        "trait T { const f: T -> bool }",
        "datatype S = N(o: ORDINAL) | Top",
        "type L = x: seq<int> | |x| > 0 witness [1]",
        'type L = x: string | |x| > 0 witness "a"',
        "type Q = seq<int> type L = x: Q | |x| > 0 witness [1]",
        "datatype T = T(f: () ~> bool)",
        "class C { ghost var f: () ~> bool }",
        "function F(): bool reads * { true }",
        "function F(f: int -> int): bool reads f.reads { true }",
        "lemma L() { var b: bv8 := 1; while b != 0 decreases b { b := b - 1; } }",
        "lemma L(b: bv8) decreases b { }",
        "type W = bv8 lemma L(b: W) decreases b { }",
        "function method Bits(): bv8 { 1 } lemma L() { var b := Bits(); while b != 0 decreases b { b := b - 1; } }",
        "datatype D = D(x: int) lemma L(d: D) { match d { case D(y: nat) => assert y >= 0; } }",
        "lemma L() { var s := set c: Cell | true; }",
        "lemma L(t: set<Cell>) { var s := set c | c in t || c.value == 0; }",
        "lemma L() { var s := set value: Cell | value.value <= 3 && 0 < value.value; }",
        "lemma L() { var s := set value: Cell | this.value <= 3; }",
        "lemma L() { var s := iset t: set<Cell> | t >= {}; }",
        "lemma L(t: set<Cell>) { var s := |set c | c in t && 3 in |t| == |t| || true|; }",
        "lemma L(t: set<Cell>) { var s := |set c | c in t && |t| == |t| || true|; }",
        "lemma L(t: set<Cell>) { var s := set c, d | c in t && d.value == 0 :: (c, d); }",
        "lemma L() { var s := map c: Cell {:trigger c.value} | c.value == 0 :: 3; }",
        "lemma L() { ghost var x := 5; assert x == 6 by { x := 6; } }",
        "lemma L() { ghost var x := 5; calc <= { x; { x := 6; } 6; } }",
        "lemma L() { ghost var x := 5; calc {:induction} ==> { true; { if true { x := 6; } } x == 6; } }",
        "lemma L() { ghost var x := 5; assert true by { x :- F(); } }",
        "ghost method G() { } lemma L() { assert true by { G(); } }",
        "method N() { var (a, b) := (1, 2); }",
        "datatype D = D(x: int) method N(d: D) { if true { var D(x) := d; } }",
        "iterator I() yields (y: int) { while true { yield; } }",
    ],
)
def test_what_breaks_dafny_is_refused(more: str) -> None:
    assert rule(GIVEN + more) == "unsound"


@pytest.mark.parametrize(
    "more",
    [
        "lemma L(d: set<int>) { var t := map x | x in d :: x; }",
        "lemma L(d: iset<int>) { var t := imap x: int | x in d :: x := 1; }",
        "method M(a: array<int>, s: set<(nat, nat)>) modifies a { forall t: (nat, nat) | t.0 < 1 && t in s { a[t.0] := 0; } }",
        "method M(a: array<int>) modifies a { forall i | 0 <= F(i) < a.Length { a[i] := 0; } } function F(i: int): int { i }",
        "method M(a: array<int>, s: seq<int>) modifies a { forall i <- s { a[0] := 0; } }",
        "lemma L(n: int) { forall i | 0 <= i < n { K(i); } } lemma K(i: int) { }",
    ],
)
def test_forms_over_values_outside_their_range_are_refused(more: str) -> None:
    assert rule(GIVEN + more.replace("method M(", "method W(")) == "unsound"


@pytest.mark.parametrize(
    "more",
    [
        "datatype T = T(s: iset<int>)",
        "datatype T = Leaf | Node(left: T, value: int, right: T)",
        "datatype State = State(f: int -> int)",
        "datatype T = T(s: set<T>, m: map<int, T>, q: seq<T>)",
        "class Node { var next: Node? var value: int }",
        "class C { const f: int -> bool constructor () { f := x => true; } }",
        "type Small = x: int | 0 <= x < 9",
        "newtype Byte = x | 0 <= x < 256",
        "type Front = d: set<int> | 0 in d witness {0}",
        "lemma L(n: nat, b: bv8) { }",
        "lemma L(n: nat) decreases n { }",
        "lemma L(d: map<int, int>) { var t: map<int, int> := map[1 := 2]; var k := d - {1}; }",
        "method W(a: array<int>) modifies a { forall i: nat | i < a.Length && a[i] > 0 { a[i] := 0; } }",
        "lemma L(n: int) { forall i | 0 <= i < n ensures i < n { } forall k: nat { } assert forall i | i in {n} :: i == n; }",
        "datatype D = E | F(x: int) lemma L(d: D) { match d { case E => case F(y) => assert y == d.x; } }",
        "lemma L(t: set<Cell>) { var s := set c | c in t && c.value == 0 :: c.value; assert |s| >= |set c | c in t| - 9; }",
        "lemma L(x: int) { var s := set i | i in {x, 2} && i != 2; assert |set i | i in [1]| > 0 || s != {}; }",
        "lemma L(n: int) { var s := set i | 0 <= i < n && i % 2 == 0 || i == n; var b := set b: bool | true; }",
        "lemma L(n: int, t: set<int>) { var s := set a, b {:trigger b in t} | a == n && b in t :: (a, b); }",
        "lemma L() { assert 1 < 2 by { var x, y := 1, [2]; ghost var z :| z == x; assert y[0 := z] == [1]; } }",
        "lemma L() { var (a, b) := (1, 2); }",
        "method N() { ghost var (a, b) := (1, 2); var x := var (c, d) := (3, 4); c; }",
        "iterator I() yields (y: int) { y := 1; yield; }",
        "lemma L(a: array<int>) { var f := (i: int) reads a requires 0 <= i < a.Length => a[i]; }",
    ],
)
def test_what_people_write_is_not(more: str) -> None:
    assert rule(GIVEN + more) is None


def test_what_the_given_program_declares_is_its_own() -> None:
    given = GIVEN + "datatype T = T(s: iset<T>) class C { const f: C -> bool } function F(): bool reads * { true }"
    assert rule(given, given) is None
    assert rule(given + "datatype U = U(s: iset<U>)", given) == "unsound"


def test_a_field_added_to_a_given_class_counts_as_new() -> None:
    assert rule(GIVEN.replace("var value: int", "var value: int const f: Cell -> bool")) == "unsound"
    assert rule(GIVEN.replace("var value: int", "var value: int ghost var seen: set<int>")) is None


def test_types_of_one_name_in_two_modules_count_as_one() -> None:
    program = "module A { datatype T = T(s: iset<int>) } module B { datatype T = T(next: set<T>) }"
    assert set(type_faults(parse(program))) == {"A.T", "B.T"}
