"""Which names of a specification a new declaration may take: those that the specification binds itself."""

import pytest

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.scopes import Use, uses
from rlvr_exp.domains.dafny.soundness import without_limits
from rlvr_exp.domains.dafny.tokens import tokens


def free(text: str) -> set[str]:
    return {use.name for use in uses(tokens(text))}


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j]", "i j"),
        ("forall i: int, j: nat | i < j :: P(i, j)", "i j"),
        ("exists m: map<int, T>, k {:trigger m[k]} :: k in m", "m k"),
        ("set x | x in s && x > 0", "x"),
        ("map k | k in m :: m[k] + k", "k"),
        ("(forall i :: if P(i) then Q(i) else R(i))", "i"),
        ("forall i :: exists j, k :: P(i, j, k)", "i j k"),
        ("var a, b := 1, 2; a + b", "a b"),
        ("var x := 1; var y := x; x + y", "x y"),
        ("forall i :: var x, y := 1, i; P(x, i)", "i x y"),
        ("newtype small = low: int | 0 <= low < 5 witness 3", "low"),
        ("|set x | x in s| == 0 && forall y :: y in s", "y"),
    ],
)
def test_a_name_that_is_bound_wherever_it_stands_means_no_declaration(text: str, bound: str) -> None:
    assert not set(bound.split()) & free(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("(forall x :: x > 0) && x()", "x"),
        ("forall x :: x > 0, x()", "x"),
        ("x() && forall x :: x > 0", "x"),
        ("if forall x :: x > 0 then x() else 0", "x"),
        ("if a then forall x :: x > 0 else x()", "x"),
        ("match (set x | x in s) { case A => x() }", "x"),
        ("match set x | x in s { case A => x() }", "x"),
        ("var x := x(); 3", "x"),
        ("(var x := 1; x) + x()", "x"),
        ("forall x <- x() :: true", "x"),
        ("newtype t = x: int | x > 0 witness x()", "x"),
        ("case Nil => Nil", "Nil"),
        ("x => x + 1", "x"),
        ("set<x>", "x"),
        ("forall a: set<x>, b :: x()", "x"),
        ("o.x == forall x :: x > 0", "x"),
        ("forall x :: o.x", "x"),
        ("forall y :: y as map<int, int> == m, y()", "y"),
    ],
)
def test_a_name_that_may_mean_a_declaration_counts(text: str, name: str) -> None:
    assert name in free(text)


def test_parameters_are_bound_but_where_they_name_a_type_or_a_member() -> None:
    found = set(uses(tokens("method M(a: b, b: int) returns (c: int)"), frozenset("abc")))
    assert Use("b", False) in found and not found & {Use("a", False), Use("c", False)}
    assert set(uses(tokens("a.c"), frozenset("ac"))) == {Use("c", True)}


GIVEN = """
datatype Tree = Leaf | Node(left: Tree, key: int, right: Tree)
predicate Sorted(s: seq<int>) { forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }
function Double(n: int): int { var half := n; half + half }
method M(a: array<int>) returns (low: int) ensures forall k :: 0 <= k < a.Length ==> low <= a[k]
class C { var size: int method Grow() modifies this ensures this.size > 0 { size := 1; } }
"""


@pytest.mark.parametrize(
    "more",
    [
        "predicate i(x: int) { x > 0 }",
        "function method half(x: int): int { x / 2 }",
        "function Length(s: seq<int>): nat { |s| }",
        "lemma low(k: int) { }",
        "const k: int := 3",
        "function left(s: seq<int>): seq<int> { s }",
    ],
)
def test_a_helper_may_be_named_like_a_bound_variable_or_a_member(more: str) -> None:
    violation, _ = guards.check(read_declarations(GIVEN), GIVEN + more, "specification", holes=False)
    assert violation is None, violation


@pytest.mark.parametrize(
    "candidate",
    [
        GIVEN + "type k = int",
        GIVEN + "module j { }",
        GIVEN + "datatype D = half | other",
        GIVEN.replace("var size: int", "var size: int function Sorted(s: seq<int>): bool { true }"),
        GIVEN.replace("var size: int", "var size: int const Length: int := 3"),
        GIVEN + "function Leaf(): int { 3 }",
    ],
)
def test_what_might_be_meant_is_not_taken_over(candidate: str) -> None:
    violation, _ = guards.check(read_declarations(GIVEN), candidate, "specification", holes=False)
    assert violation is not None and violation.rule == "spec-shadowed"


def test_the_type_of_a_parameter_is_not_taken_over_by_its_name() -> None:
    given = "module A { type Key = x: int | x > 3 witness 4 } module B { import opened A method M() returns (Key: Key) { Key := 4; } }"
    violation, _ = guards.check(
        read_declarations(given), given.replace("A method", "A type Key = int method"), "specification"
    )
    assert violation is not None and violation.rule == "spec-shadowed"


@pytest.mark.parametrize("name", ["timeLimit", "timeLimitMultiplier", "rlimit"])
def test_limits_of_proofs_are_blanked_out_in_place(name: str) -> None:
    text = f'lemma {{:{name} /* a\nb */ 60}} L() {{ print "{{:{name} 60}}"; }} // {{:{name} 60}}\n'
    found = without_limits(text)
    assert len(found) == len(text) and found.count("\n") == 2 and found.count(name) == 2
    assert tokens(found)[:2] == ["lemma", "L"]


@pytest.mark.parametrize("attribute", ["{:timeLimit 0, 1}", '{:timeLimit "1"}', "{:timeLimitX 3}", "{:verify false}"])
def test_other_attributes_stay(attribute: str) -> None:
    assert without_limits(f"lemma {attribute} L() {{ }}") == f"lemma {attribute} L() {{ }}"
