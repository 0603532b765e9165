"""Programs without hints that were cut in the middle of an annotation: only answers that add lines with hints replace them."""

import pytest
from dafny_samples import UP

from rlvr_exp.domains.dafny.syntax import split
from rlvr_exp.domains.dafny.torn import is_torn, untorn

TRUTH = f"""function Sum(n: nat): nat
  decreases n
{{
  if n == 0 then 0 else n + Sum(n - 1)
}}

{UP}
method Two() returns (r: int)
  ensures r == 2
{{
  r := 2;
}}
"""


def without(text: str, *lines: str) -> str:
    for line in lines:
        assert text.count(f"{line}\n") == 1
        text = text.replace(f"{line}\n", "")
    return text


CUT = ("  decreases n", "    invariant m <= n", "    assert m < n by {", "      assert true;")
TORN = without(TRUTH, *CUT)
WHOLE = without(TRUTH, "    invariant m <= n").replace("    assert m < n by {\n      assert true;\n    }\n", "")


def test_a_text_without_whole_annotations_is_not_torn() -> None:
    whole = split(TRUTH)
    assert not is_torn(WHOLE, whole) and not is_torn(TRUTH, whole)
    endless = TRUTH.replace("  ensures r == 2", "  ensures r == 2\n  decreases *")
    assert is_torn(TRUTH, split(endless)) and not is_torn(endless, split(endless))
    assert is_torn(TORN, whole) and is_torn(TRUTH.replace("m := m + 1", "m := m + 1 + 0"), whole)


def test_the_answer_with_erased_bodies_takes_the_place_of_a_torn_text() -> None:
    assert untorn(TORN, TRUTH) == WHOLE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  ensures m == n\n", "  ensures m == n\n  requires false\n"),
        ("  ensures m == n\n", ""),
        ("  decreases n\n", "  decreases n requires false\n"),
        ("  decreases n\n", "  decreases *\n"),
        ("  m := 0;\n", "  m := 0;\n  assume false;\n"),
        ("  m := 0;\n", "  m := 0;\n  assert true; m := n;\n"),
        ("  if n == 0", "  assert true; 1 +\n  if n == 0"),
        ("  m := 0;\n", "  m := 0;\n  assert true; /*\n"),
        ("    m := m + 1;\n  }\n}\n", "    m := m + 1;\n  }\n  assert true; /*\n}\n"),
        ("method Two() ", "method Three() "),
        ("  r := 2;\n}\n", "  r := 2;\n"),
    ],
)
def test_an_answer_that_adds_more_than_hints_does_not(before: str, after: str) -> None:
    assert TRUTH.count(before) == 1
    answer = TRUTH.replace(before, after)
    if "/*" in after:  # The rest of the specification would become a comment.
        answer = answer.replace("  r := 2;\n", "  r := 2;\n  assert */ true;\n")
    assert untorn(TORN, answer) is None
