"""Declarations and methods of a program: heads, clauses and bodies are distinguished, and the parts of a method are the program."""

import pytest
from hypothesis import given, settings
from surface_programs import BY_METHOD, GHOSTS, MAX, SUM, programs

from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, parse, split
from rlvr_exp.domains.dafny.tokens import places, plain, tokens

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


@settings(deadline=None)
@given(programs())
def test_every_method_put_together_is_the_program(text: str) -> None:
    for method in split(text).methods:
        assert method.before + method.header + method.spec + method.body + method.after == text


@settings(deadline=None)
@given(programs())
def test_parts_begin_and_end_at_their_tokens(text: str) -> None:
    for method in split(text).methods:
        assert method.body[0] == "{" and method.body[-1] == "}"
        assert not method.header[0].isspace() and tokens(plain(method.header))[-1] not in ("requires", "ensures", "{")
        assert (*tokens(plain(method.spec)), "{")[0] in ("requires", "ensures", ";", "{")


@settings(deadline=None)
@given(programs())
def test_tokens_stand_where_they_are_said_to(text: str) -> None:
    found = [text[start:stop] for start, stop in places(text)]
    assert [plain(one) for one in found] == tokens(plain(text))


def test_context_header_specification_and_body() -> None:
    total = split(SUM).methods[-1]
    assert total.header == "method Total(s: seq<int>) returns (t: int)\n"
    assert total.spec == "  ensures t == Sum(s)\n"
    assert total.before.endswith("}\n\n") and total.after == "\n" and total.body.startswith("{\n  t := 0;")


def test_methods_are_found_in_modules_and_classes_by_their_qualified_names() -> None:
    found = split(GHOSTS)
    assert [(one.name, one.kind, one.ghost) for one in found.methods] == [
        ("M.C.Note", "method", True),
        ("M.C.Add", "method", False),
    ]
    assert found.proofs == {"Note"}


def test_a_functions_definition_is_the_specification_of_its_method() -> None:
    (found,) = split(BY_METHOD).methods
    assert found.header == "function Twice(x: nat): nat\n"
    assert found.spec == "  ensures Twice(x) == 2 * x\n{ 2 * x } by method "
    assert found.body == "{\n  return x + x;\n}"


@pytest.mark.parametrize(
    ("text", "header", "spec"),
    [
        ("method M() { }", "method M() ", ""),
        ("method M()\n{ }", "method M()\n", ""),
        ("method M() requires true { }", "method M() ", "requires true "),
        ("method M() // why\n\n  requires true\n{ }", "method M() // why\n", "\n  requires true\n"),
        ("method M() /*\n*/ requires true { }", "method M() /*\n*/ ", "requires true "),
        ("method M();\r\n  requires true;\r\n{ }", "method M()", ";\r\n  requires true;\r\n"),
        ("method M()\r\n  requires true\r\n{ }", "method M()\r\n", "  requires true\r\n"),
        ("method M()\r  requires true\r{ }", "method M()\r", "  requires true\r"),
    ],
)
def test_the_header_ends_with_its_line(text: str, header: str, spec: str) -> None:
    (found,) = split(text).methods
    assert (found.header, found.spec, found.body) == (header, spec, "{ }")


def test_byte_order_mark_and_line_ends_stay() -> None:
    text = "\ufeff" + MAX.replace("\n", "\r\n")
    (found,) = split(text).methods
    assert found.before == "\ufeff" and found.header + found.spec + found.body + found.after == text[1:]


@pytest.mark.parametrize(
    "text",
    ["iterator I() yields (x: int) { }", "class C { constructor () { } }", "method M()", "function F(): int { 3 }", ""],
)
def test_what_has_no_code_of_a_method_is_no_target(text: str) -> None:
    assert split(text).methods == ()


@pytest.mark.parametrize("text", ["method M() {", "x", "method M() { § }", "method M() { }\n#if X\n"])
def test_what_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(Unreadable):
        split(text)
