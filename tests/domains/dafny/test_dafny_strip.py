"""Bodies lose their annotations and nothing else."""

import pytest
from hypothesis import given, settings
from surface_programs import SUM, TOTAL_BODY, programs

from rlvr_exp.domains.dafny.annotations import erased, hollow, method_body
from rlvr_exp.domains.dafny.syntax import split
from rlvr_exp.domains.dafny.tokens import plain, tokens


def code(body: str, proofs: frozenset[str] = frozenset()) -> list[str]:
    return list(method_body(tokens(plain(body)), proofs))


@settings(deadline=None)
@given(programs())
def test_the_text_that_is_left_has_the_tokens_that_are_left(text: str) -> None:
    whole = split(text)
    for method in whole.methods:
        assert tokens(plain(erased(method.body, whole.proofs))) == code(method.body, whole.proofs)


@settings(deadline=None)
@given(programs())
def test_what_is_erased_has_nothing_more_to_erase(text: str) -> None:
    for method in split(text).methods:
        once = erased(method.body, frozenset())
        assert erased(once, frozenset()) == once


@pytest.mark.parametrize(
    "clause",
    ["i <= n && r == i as Num<int>", "P<int> == P<int>", "true && i is Num<int>"],
)
def test_a_loop_body_behind_an_invariant_that_ends_in_a_type_is_no_set(clause: str) -> None:
    other, own = "{ r := n - 1; i := n; }", "{ r := r + 1; i := i + 1; }"
    left = code(f"{{ while i < n invariant {clause} {other} {own} }}")
    assert left == code(f"{{ while i < n {other} {own} }}") != code(f"{{ while i < n {own} }}")
    assert code(f"{{ while i < n invariant {clause} {own} }}") == code(f"{{ while i < n {own} }}")
    assert code(f"{{ while i < n invariant i > {{1, 2}} {own} }}") == code(f"{{ while i < n {own} }}"), "a set"


def test_lines_of_annotations_go_and_comments_stay() -> None:
    whole = split(SUM)
    assert erased(whole.methods[-1].body, whole.proofs) == TOTAL_BODY


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("{ x := 1; assert x == 1; y := 2; }", "{ x := 1; y := 2; }"),
        ("{assert true;}", "{}"),
        ("{\n  while a invariant b\n  { }\n}", "{\n  while a\n  { }\n}"),
        ("{\n  while a\n    invariant b invariant c\n  { }\n}", "{\n  while a\n  { }\n}"),
        ("{\r\n  assert a;\r\n  x := 1;\r\n}", "{\r\n  x := 1;\r\n}"),
        ("{\n  assert forall i ::\n    i == i;\n  x := 1;\n}", "{\n  x := 1;\n}"),
        ("{\n  assert a; // why\n}", "{\n  // why\n}"),
        ("{ assert a by { assert b; } }", "{ }"),
        ("{ label L: x := 1; assert old@L(x) == 0; }", "{ x := 1; }"),
        ("{ label L: while a { break L; } }", "{ label L: while a { break L; } }"),
        ('{ print "assert a;"; /* assert a; */ }', '{ print "assert a;"; /* assert a; */ }'),
    ],
)
def test_layout_around_what_goes(body: str, wanted: str) -> None:
    assert erased(body, frozenset()) == wanted


def test_comments_that_mark_annotations_go_with_them() -> None:
    body = "{\n  while a\n    // start\n    invariant b\n    // end\n  { } // kept\n}"
    assert erased(body, frozenset(), lambda text: text in ("// start", "// end")) == "{\n  while a\n  { } // kept\n}"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [("{ L(); }", "{}"), ("{\n    L();\n  }", "{\n  }"), ("{\r\n  L();\r\n}", "{\r\n}")],
)
def test_of_a_proof_the_braces_stay(body: str, wanted: str) -> None:
    assert hollow(body) == wanted
