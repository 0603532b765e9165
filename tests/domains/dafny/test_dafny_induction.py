"""Lemmas lose their automatic induction, other declarations keep everything."""

import pytest

from rlvr_exp.domains.dafny.induction import has_loops, manual_induction

OFF = " {:induction false}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("lemma L(n: nat) ensures P(n) { }", f"lemma{OFF} L(n: nat) ensures P(n) {{ }}"),
        ("ghost method L() { }", f"ghost method{OFF} L() {{ }}"),
        ("least lemma L() { }", f"least lemma{OFF} L() {{ }}"),
        ("lemma {:induction n} L(n: nat) { }", f"lemma{OFF}                L(n: nat) {{ }}"),
        ("@Induction(n)\n@Fuel(2) lemma L(n: nat) { }", f"             \n@Fuel(2) lemma{OFF} L(n: nat) {{ }}"),
        (
            "lemma L() { assert forall n {:induction} :: P(n); }",
            f"lemma{OFF} L() {{ assert forall n              :: P(n); }}",
        ),
        ("lemma L() ensures P(3)", None),
        ("method M() { } function F(): int { 3 }", None),
        ("lemma Other() { } // lemma L() { }", None),
    ],
)
def test_wanted_lemmas_have_no_automatic_induction(text: str, wanted: str | None) -> None:
    assert manual_induction(text, lambda label: label == "L") == (wanted or text)


def test_labels_are_those_of_the_guards() -> None:
    text = "module A { class C { lemma L() { } } }\nlemma L() { }"
    assert manual_induction(text, "A.C.L".__eq__) == text.replace("lemma", f"lemma{OFF}", 1)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("method M() { while true { } }", True),
        ("method M() { for i := 0 to 3 { } }", True),
        ("method M() { } // while", False),
        ('method M() { print "while"; forall x: int { } }', False),
    ],
)
def test_loops_are_found_outside_of_comments(text: str, wanted: bool) -> None:
    assert has_loops(text) == wanted
