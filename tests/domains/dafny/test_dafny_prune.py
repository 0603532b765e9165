"""Pruning: what an error drops, what stays, and when it ends. The errors are scripted by the words that they point to."""

from types import SimpleNamespace

import pytest

from rlvr_exp.domains.dafny.prune import prune, without_failing

LOOP = """method Sum(n: nat) returns (r: nat)
  ensures r == 2 * n
{
  r := 0;
  var i := 0;
  while i < n  // to the end
    invariant i <= n
    invariant r == 2 * i && i != 3 && r >= 0
    decreases n - i
  {
    ghost var old_r := r;
    i := i + 1;
    r := r + 2;
    assert r > old_r;
    Helper(r);
    forall k | 0 <= k < 3 ensures k >= 0 { assert k == 9; }
    assert i >= 0 by { assert i == 0; }
    calc { r; == r + 0; }
  }
}
lemma Helper(x: int) ensures x == x { assert x == 3; }
"""


def error(text: str, words: str) -> SimpleNamespace:
    """The place of some words."""
    before = text[: text.index(words)]
    return SimpleNamespace(line=before.count("\n") + 1, column=len(before) - before.rfind("\n"))


def dropped(words: str, text: str = LOOP, given: str = "") -> list[str]:
    found = without_failing(text, given, [error(text, words)])
    return [] if found is None else found[1]


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("<= n", ["invariant i <= n"]),
        ("- i", ["decreases n - i"]),
        ("while", ["decreases n - i"]),
        ("== 2 * i", ["r == 2 * i &&"]),
        ("!= 3", ["i != 3 &&"]),
        ("r >= 0", ["&& r >= 0"]),
        ("&& i", ["invariant r == 2 * i && i != 3 && r >= 0"]),
        ("> old_r", ["assert r > old_r;"]),
        (":= r;", ["ghost var old_r := r;"]),
        ("(r);", ["Helper(r);"]),
        ("k == 9", ["assert k == 9;"]),
        (">= 0 { ", ["forall k | 0 <= k < 3 ensures k >= 0 { assert k == 9; }"]),
        ("i == 0", ["assert i == 0;"]),
        (">= 0 by", ["assert i >= 0 by { assert i == 0; }"]),
        ("+ 0", ["calc { r; == r + 0; }"]),
        ("== 3", ["assert x == 3;"]),
        ("i + 1", []),
        ("ensures r", []),
        ("ensures x", []),
    ],
)
def test_an_error_drops_the_annotation_that_it_points_to(words, gone) -> None:
    assert dropped(words) == gone


@pytest.mark.parametrize(
    "clause",
    ["a ==> b && c", "a || b && c", "forall k :: k > 0 && c", "if a then b else b && c", "var x := a; b && c"],
)
def test_a_conjunction_inside_of_another_operator_goes_as_one(clause) -> None:
    text = f"method M() {{ while true invariant {clause} {{ }} }}"
    assert dropped("c {", text) == [f"invariant {clause}"]


def test_a_quantifier_is_the_last_conjunct() -> None:
    text = "method M() { while true invariant a && forall k :: p && q { } }"
    assert dropped("q {", text) == ["&& forall k :: p && q"]
    assert dropped("a &&", text) == ["a &&"]


def test_a_loop_without_a_measure_does_not_lose_that_of_the_next() -> None:
    text = "method M() { while a { } while b decreases x { } }"
    assert dropped("while a", text) == [] and dropped("while b", text) == ["decreases x"]


def test_annotations_of_the_given_program_stay() -> None:
    given = LOOP.replace("    invariant i <= n\n", "")
    assert dropped("<= n", given=given) == ["invariant i <= n"]
    assert dropped("!= 3", given=given) == [] == dropped("<= n", given=LOOP)
    twice = LOOP.replace("    invariant i <= n\n", 2 * "    invariant i <= n\n")
    assert (
        dropped("<= n", twice, LOOP) == []
        and len(without_failing(twice, LOOP, [SimpleNamespace(line=8, column=17)])[1]) == 1
    ), "the given one stays, a copy of it goes"


def test_a_cardinality_ends_no_conjunct() -> None:
    assert dropped("d {", "method M() { while true invariant i <= |s| && d { } }") == ["&& d"]


def test_nothing_is_dropped_from_a_program_that_cannot_be_read() -> None:
    assert without_failing("method M() { assert false;", "", [SimpleNamespace(line=1, column=14)]) is None


def test_one_annotation_of_each_callable_goes_at_a_time() -> None:
    errors = [error(LOOP, words) for words in ("== 3", "> old_r", "== 2 * i", "<= n", "- i")]
    text, gone = without_failing(LOOP, "", errors)
    assert gone == ["invariant i <= n", "assert x == 3;"]
    assert "  while i < n  // to the end\n    invariant r == 2 * i" in text and "ensures x == x { }" in text


class Judge:
    """Proves a program without these words."""

    def __init__(self, *wrong: str):
        self.wrong, self.runs = wrong, 0

    def errors(self, text: str) -> list[SimpleNamespace]:
        return [error(text, words) for words in self.wrong if words in text]

    def __call__(self, text: str):
        self.runs += 1
        return not self.errors(text), self.errors(text)


def test_it_repeats_until_the_program_verifies() -> None:
    judge = Judge("== 2 * i", "i != 3", "> old_r")
    found = prune(LOOP, "", judge.errors(LOOP), judge)
    assert found.result and judge.runs == 3
    assert found.dropped == ("r == 2 * i &&", "i != 3 &&", "assert r > old_r;")
    assert "invariant r >= 0\n" in found.text


def test_it_ends_when_no_error_points_to_an_annotation() -> None:
    judge = Judge("i <= n", "r := r + 2")
    found = prune(LOOP, "", judge.errors(LOOP), judge)
    assert not found.result and judge.runs == 1 and found.dropped == ("invariant i <= n",)
    assert prune(LOOP, "", [error(LOOP, "r := r + 2")], judge) is None
