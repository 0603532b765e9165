"""Annotations: bodies lose them and nothing else; those of the gold with a place are grafted onto other bodies."""

from dataclasses import replace

import pytest
from dafny_samples import GROWS, MAX, SUM
from hypothesis import given, settings
from hypothesis import strategies as st
from surface_programs import SUM as TOTAL
from surface_programs import TOTAL_BODY, programs

from rlvr_exp.domains.dafny.annotations import erased, grafted, hollow, method_body
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
    whole = split(TOTAL)
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


CLAUSES = ("invariant 0 <= i <= n", "invariant s == Tri(i)")
ASSERT = "assert s == Tri(i);"


@pytest.mark.parametrize("example", [MAX, SUM], ids=lambda one: one.id)
def test_the_golds_own_body_gets_all(example) -> None:
    assert grafted(example.body, example) == example.annotated_body
    assert tokens(grafted(example.body.replace("\n", " /* a */ \n"), example)) == tokens(example.annotated_body)


def test_the_golds_code_with_some_of_its_annotations_gets_the_rest() -> None:
    some = SUM.body.replace("    s := s + i;\n", f"    s := s + i;\n    {ASSERT}\n")
    assert grafted(some, SUM) == SUM.annotated_body
    more = SUM.body.replace("s := 0;", "s := 0;\n  assert n >= 0;")
    assert "assert n >= 0;" in grafted(more, SUM) and CLAUSES[1] in grafted(more, SUM)


def test_other_code_gets_what_has_a_place() -> None:
    downwards = "{\n  s := 0;\n  var i := 0;\n  while i != n\n  {\n    i := i + 1;\n    s := i + s;\n  }\n}"
    text = grafted(downwards, SUM)
    assert all(clause in text for clause in CLAUSES) and ASSERT in text
    assert text.index(CLAUSES[1]) < text.index("{\n    i := i + 1") and text.index("s := i + s;") < text.index(ASSERT)


def test_variables_of_other_names_are_the_golds() -> None:
    other = SUM.body.replace("i", "k").replace("whkle", "while")
    assert grafted(other, SUM) == SUM.annotated_body.replace("i", "k").replace("whkle", "while").replace(
        "knvarkant", "invariant"
    ).replace("Trk", "Tri")


def test_what_speaks_of_a_variable_that_is_not_there_is_left_out() -> None:
    closed_form = "{\n  s := n * (n + 1) / 2;\n}"
    assert grafted(closed_form, SUM) == closed_form
    two = SUM.body.replace("var i := 0;", "var j := 0; var k := 0;").replace("while i < n", "while k < n")
    assert "invariant" not in grafted(two, SUM)


def test_what_the_body_says_itself_is_not_said_twice() -> None:
    own = SUM.body.replace("while i < n\n", f"while i < n\n    {CLAUSES[0]}\n    decreases n - i\n")
    gold = replace(
        SUM, annotated_body=SUM.annotated_body.replace("while i < n\n", "while i < n\n    decreases n - i + 1\n")
    )
    text = grafted(own, gold)
    assert text.count(CLAUSES[0]) == 1 and text.count("decreases") == 1 and CLAUSES[1] in text


def test_a_ghost_variable_and_what_needs_it_go_together() -> None:
    ghost = SUM.annotated_body.replace("var i := 0;", "var i := 0;\n  ghost var g := i;").replace(
        ASSERT, "assert g == 0;"
    )
    gold = replace(SUM, annotated_body=ghost)
    assert grafted(SUM.body, gold) == ghost
    elsewhere = "{\n  s := 0;\n  while s < n\n  {\n    s := s + 1;\n  }\n}"
    assert "g" not in tokens(grafted(elsewhere, gold))


def test_a_call_of_a_lemma_is_an_annotation() -> None:
    gold = replace(
        SUM,
        before=SUM.before + GROWS.header + GROWS.spec + GROWS.annotated_body + "\n",
        annotated_body=SUM.annotated_body.replace(ASSERT, "Grows(i);"),
    )
    assert "Grows(i);" in grafted(SUM.body.replace("i := i + 1;", "i := 1 + i;"), gold)


def test_a_body_whose_brackets_do_not_match_stays_as_it_is() -> None:
    assert grafted("{ s := (0; }", SUM) == "{ s := (0; }"


STATEMENTS = st.recursive(
    st.sampled_from(
        ["s := 0;", "i := i + 1;", "s := s + i;", "var i := 0;", "var k, j := 1, n;", "assert s >= 0;", "", "break;"]
    ),
    lambda inner: st.builds(
        lambda head, body: f"{head}\n{{ {' '.join(body)} }}",
        st.sampled_from(
            ["while i < n", "while i < n invariant i >= 0", "for j := 0 to n", "if s > 0", "if i == 0 { } else"]
        ),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@given(st.lists(STATEMENTS, max_size=5), st.sampled_from([SUM, GROWS]))
def test_a_graft_never_changes_code(statements: list[str], example) -> None:
    body = "{\n" + "\n".join(statements) + "\n}"
    proofs = {"Grows"}
    assert method_body(tokens(grafted(body, example)), proofs) == method_body(tokens(body), proofs)


@given(
    st.lists(
        st.sampled_from(
            ["{", "}", "(", ")", "while", "for", "to", "var", ":=", ".", ";", "i", "assert", "\x00", "|", "::", "case"]
        )
    )
)
def test_no_body_breaks_the_graft(parts: list[str]) -> None:
    body = "{ " + " ".join(parts) + " }"
    assert isinstance(grafted(body, SUM), str)
