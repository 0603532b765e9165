"""Which type parameters of datatypes are marked covariant before Dafny verifies a program."""

import pytest

from rlvr_exp.domains.dafny.variance import covariant


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
        "datatype B<!T> = B(v: T)",
        "class Cell<T> { var v: T constructor (v: T) { this.v := v; } }",
        "datatype Color = Red | Green function F<T>(t: T): T { t }",
    ],
)
def test_other_programs_stay_as_they_are(program: str) -> None:
    assert covariant(program) == program
