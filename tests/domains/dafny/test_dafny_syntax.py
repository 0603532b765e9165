"""The declaration reader: heads, clauses and bodies are distinguished, whatever the expressions between them."""

import pytest

from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, parse

EXPRESSIONS = [
    "r in {1, 2}",
    "|s| == |t|",
    "|set x | x in s| == 0",
    "forall i :: 0 <= i < |s| ==> s[i] in {i}",
    "forall a: array<int> | a != null :: a.Length >= 0",
    "exists k {:trigger f(k)} :: f(k) == k",
    "match t { case Leaf => true case Node(l, r) => false }",
    "match t case Leaf => true case Node(l, r) => false",
    "var k := 3; k == 3",
    "if a then b else {c} == {d}",
    "multiset(s) == multiset{1, 2}",
    "old(x).y == map[1 := 2][1]",
    "assert true; P(x)",
    "P#[k](x) ==#[k] y",
    "(x => x + 1)(3) == 4",
    "s[..3] + s[3..] == s && !(a !in b) && x !! y",
    "seq<int>.f(x) == y as int",
]


def only(text: str) -> Declaration:
    (found,) = parse(text)
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_body_begins_behind_the_clauses(expression: str) -> None:
    found = only(f"method M(x: int) returns (r: int) requires {expression} ensures {expression} {{ body := 1; }}")
    assert [clause.word for clause in found.clauses] == ["requires", "ensures"]
    assert found.clauses[0].text == found.clauses[1].text and found.body == ("body", ":=", "1", ";")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_missing_body_is_seen(expression: str) -> None:
    first, second = parse(f"lemma L() ensures {expression} method M() {{ }}")
    assert first.body is None and second.body == ()


def test_semicolons_of_the_older_style_change_nothing() -> None:
    new = only("method M() requires a modifies b ensures c { }")
    assert only("method M() requires a; modifies b; ensures c; { }") == new


def test_members_stand_below_their_class() -> None:
    (module,) = parse("module A.B { class C extends T { var x: int, y: seq<int>; constructor () { } const z := 3 } }")
    (found,) = module.members or ()
    kinds = [(member.kind, list(member.names())) for member in found.members or ()]
    assert module.name == "A.B" and kinds == [("field", ["x", "y"]), ("constructor", []), ("const", ["z"])]


def test_constructors_of_a_datatype_are_names() -> None:
    assert list(only("datatype D<T> = A(x: int) | {:attr} B | C(y: D<T>)").names()) == ["D", "A", "B", "C"]


def test_attributes_are_kept_apart_wherever_they_stand() -> None:
    assert only("method { /* */ : verify false} M() { }").attributes == (("{", ":", "verify", "false", "}"),)


def test_compiled_body_of_a_function_is_kept_apart() -> None:
    found = only("function F(): int { 1 } by method { return 1; }")
    assert (found.body, found.compiled) == (("1",), ("return", "1", ";"))


@pytest.mark.parametrize("text", ["method M() {", "method M() { ) }", "}", "done 0 0", "method M() { } 3", "module M"])
def test_what_cannot_be_placed_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


def test_deep_nesting_is_unreadable_and_does_not_break_python() -> None:
    with pytest.raises(Unreadable):
        parse("module M {" * 5000 + "}" * 5000)
