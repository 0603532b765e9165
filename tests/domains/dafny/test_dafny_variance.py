"""Which type parameters of datatypes are marked covariant before Dafny verifies a program."""

import pytest

from rlvr_exp.domains.dafny.syntax import parse
from rlvr_exp.domains.dafny.tokens import tokens
from rlvr_exp.domains.dafny.variance import covariant, invariant_types, mixed_types


@pytest.mark.parametrize(
    ("program", "marked"),
    [
        ("datatype Box<T> = Box(v: T)", "datatype Box<+T> = Box(v: T)"),
        (
            "datatype Option<T(==), U> = None | Some(v: T, u: seq<U>) { predicate P() { true } }\nmethod M() { }",
            "datatype Option<+T(==), +U> = None | Some(v: T, u: seq<U>) { predicate P() { true } }\nmethod M() { }",
        ),
        (
            "datatype Tree<+A, B> = Leaf | Node(l: Tree<A, B>, b: B)",
            "datatype Tree<+A, +B> = Leaf | Node(l: Tree<A, B>, b: B)",
        ),
        (
            "type Row<A> = seq<(A, int)> type Same<A> = Row<A> datatype X<A> = X(a: Same<A>)",
            "type Row<A> = seq<(A, int)> type Same<A> = Row<A> datatype X<+A> = X(a: Same<A>)",
        ),
        ("module M { datatype X<A> = X(ghost a: A) }", "module M { datatype X<+A> = X(ghost a: A) }"),
    ],
)
def test_parameters_in_covariant_places_are_marked(program: str, marked: str) -> None:
    assert covariant(program) == marked


@pytest.mark.parametrize(
    "program",
    [
        "datatype F<A> = F(f: A -> int)",
        "datatype F<A> = F(f: A -> int) datatype G<B> = G(f: F<B>)",
        "datatype C<A> = C(a: array<A>)",
        "type Test<A> = A -> bool datatype X<A> = X(a: Test<A>)",
        "datatype B<!T> = B(v: T) datatype X<A> = X(a: B<A>)",
        "datatype B<!T> = B(v: T)",
        "class Cell<T> { var v: T constructor (v: T) { this.v := v; } }",
        "datatype Color = Red | Green function F<T>(t: T): T { t }",
    ],
)
def test_other_programs_stay_as_they_are(program: str) -> None:
    assert covariant(program) == program


@pytest.mark.parametrize(
    ("given", "text", "mixed"),
    [
        ("method M(a: array<nat>)", "method M(a: array<nat>) { var b := new int[1]; }", ("int", "nat")),
        ("", "lemma L(a: seq<array<nat>>, b: seq<array<int>>) { }", ("int", "nat")),
        ("", "lemma L(a: array2<seq<nat>>, b: array2<seq<int>>) { }", ("seq < int >", "seq < nat >")),
        ("class C<T> { }", "class C<T> { } lemma L(a: C<nat>, b: C<int>) { }", ("int", "nat")),
        ("class C<T> { }", "class C<T> { } method M(a: C<nat>) { var b := new C(-1); }", ("", "nat")),
        (
            "type P = x: int | x > 0 witness 1",
            "type P = x: int | x > 0 witness 1 lemma L(a: array<P>, b: array<int>)",
            ("P", "int"),
        ),
        ("lemma L(a: array<nat>, b: array<int>)", "lemma L(a: array<nat>, b: array<int>) { }", None),
        ("method M(a: array<nat>)", "method M(a: array<nat>) { var b := new nat[1]; var c := new bool[2]; }", None),
        (
            "method M(a: array<int>, n: nat)",
            "method M(a: array<int>, n: nat) { var b := new int[n]; var c := new C(n); }",
            None,
        ),
    ],
)
def test_arrays_whose_elements_differ_by_a_constraint(given: str, text: str, mixed: tuple[str, str] | None) -> None:
    invariant = invariant_types(parse(text)) if "class" in text else ()
    assert mixed_types(tokens(given), tokens(text), invariant) == mixed
