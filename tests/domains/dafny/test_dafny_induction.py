"""Lemmas lose their automatic induction, other declarations keep everything."""

import pytest

from rlvr_exp.domains.dafny.induction import calls_in_requirements, manual_induction
from rlvr_exp.domains.dafny.syntax import parse

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
    ("requirements", "wanted"),
    [
        ("", False),
        ("requires n > 0", False),
        ("requires |s| > n && (n == 3) && s[0] == 1", False),
        ("requires forall i | 0 <= i < |s| :: (s[i] == 2)", False),
        ("requires P(n)", True),
        ("requires s[0].x == 1", True),
        ("requires n > 0 requires Q<int>(n)", True),
        ("requires P#[n](s)", True),
        ("requires (x => x > 1)(n)", True),
        ("ensures P(n)", False),
    ],
)
def test_calls_in_requirements(requirements: str, wanted: bool) -> None:
    (one,) = parse(f"lemma L(n: int, s: seq<D>) {requirements} {{ }}")
    assert calls_in_requirements(one) == wanted
