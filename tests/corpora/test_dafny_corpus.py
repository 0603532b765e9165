"""The Dafny corpus' generator: notation, families, styles, wordings, mutants, and reproducible splits."""

from collections import Counter
from itertools import pairwise

import pytest
from thinning import thinned

from rlvr_exp.core import seeds
from rlvr_exp.corpora.dafny import mixture
from rlvr_exp.corpora.dafny.build import build_splits, side
from rlvr_exp.corpora.dafny.catalogue import FAMILIES
from rlvr_exp.corpora.dafny.layout import body, lay
from rlvr_exp.corpora.dafny.mutate import mutant
from rlvr_exp.corpora.dafny.row import build, canonical
from rlvr_exp.corpora.splits import text_of
from rlvr_exp.tasks.dafny.strip import erased
from rlvr_exp.tasks.dafny.tokens import tokens

LOOP = """
r := 0;
while r < n
@ r <= n
~ decreases n - r
  if r == 3
    r := r + 2;
  else
    r := r + 1;
@Fact(r);
~assert r >= n;
"""


def always(word):
    return lambda asked: [word] * len(asked)


def test_notation_becomes_dafny():
    assert (
        body(lay(LOOP))
        == """{
  r := 0;
  while r < n
    invariant r <= n
    decreases n - r
  {
    if r == 3 {
      r := r + 2;
    } else {
      r := r + 1;
    }
  }
  Fact(r);
  assert r >= n;
}"""
    )


def test_code_alone_has_no_annotation():
    assert body(lay(LOOP), ("",)).splitlines()[1:4] == ["  r := 0;", "  while r < n", "  {"]
    assert "Fact" not in body(lay(LOOP), ("",)) and "assert" in body(lay(LOOP), ("", "~"))


def test_a_line_that_is_indented_under_nothing_is_refused():
    with pytest.raises(ValueError, match="indented under nothing"):
        lay("r := 0;\n  r := 1;")


def test_there_are_enough_families_and_most_are_written_in_both_ways():
    drawn = {name: {build(family, "test", i).style for i in range(40)} for name, family in FAMILIES.items()}
    both = [name for name, styles in drawn.items() if len({style.split("/")[0] for style in styles}) == 2]
    assert len(FAMILIES) >= 60 and len(both) >= 60
    assert len(mixture.UNSEEN_FAMILIES) >= 8 and set(mixture.UNSEEN_FAMILIES) <= set(FAMILIES)


@pytest.mark.parametrize("name", thinned(FAMILIES))
def test_a_body_is_its_annotated_body_as_the_project_erases_it(name):
    for i in range(12):
        one = build(FAMILIES[name], "erasure", i)
        words = tokens(one.before)
        proofs = [after for word, after in pairwise(words) if word == "lemma"]
        assert erased(one.annotated, proofs) == one.body


@pytest.mark.parametrize("name", thinned(FAMILIES))
def test_a_family_has_much_to_draw(name):
    drawn = [build(FAMILIES[name], "variety", i) for i in range(100)]
    assert len({one.program() for one in drawn}) > 90
    assert len({one.key for one in drawn}) > 12


def test_keys_are_equal_for_other_names_and_differ_for_other_constants():
    first = canonical("method M(x: int) returns (r: int)\n  ensures r == 2 * x\n")
    assert first == canonical("method Twice(a: int) returns (b: int)\n  ensures b == 2 * a\n")
    assert first != canonical("method M(x: int) returns (r: int)\n  ensures r == 3 * x\n")
    assert first != canonical("method M(x: int) returns (r: int)\n  ensures r == 2 * r\n")


def test_styles_come_in_their_shares():
    drawn = [build(FAMILIES[name], "shares", i).style for name in ("affine", "bands", "fill") for i in range(200)]
    winded = sum(style.startswith("winded") for style in drawn) / len(drawn)
    assert winded == pytest.approx(mixture.WINDED_SHARE, abs=0.07)


def test_sides_come_in_their_shares_and_hang_on_the_key_alone():
    sides = Counter(side(f"key {i}") for i in range(3000))
    assert {name: count / 3000 for name, count in sides.items()} == pytest.approx(mixture.SIDES, abs=0.03)
    assert side("key 1") == side("key 1")


def test_mutants_change_one_place_of_the_kind_that_is_asked_for():
    one = next(one for i in range(50) if "while" in (one := build(FAMILIES["array_sum"], "mutants", i)).annotated)
    rng = seeds.stream("test")
    missing, annotation, code = (mutant(one.lines, kind, rng) for kind in mixture.MUTANT_KINDS)
    assert len(missing.splitlines()) == len(one.annotated.splitlines()) - 1 and erased(missing, ()) == one.body
    assert annotation != one.annotated and erased(annotation, ()) == one.body
    assert erased(code, ()) != one.body


def test_no_mutant_where_there_is_nothing_to_change():
    plain = lay("r := x;")
    assert all(mutant(plain, kind, seeds.stream("test")) is None for kind in mixture.MUTANT_KINDS)


SIZES = {"test": 70, "dev": 65, "test_unseen": 12, "train": 130, "practice": 70}


def test_the_same_code_draws_the_same_splits():
    (first, _), (second, _) = (build_splits(SIZES, always("proved")) for _ in range(2))
    assert {name: len(rows) for name, rows in first.items()} == SIZES
    assert all(text_of(first[name]) == text_of(second[name]) for name in SIZES)


def test_what_is_not_proved_is_dropped_counted_and_drawn_again():
    def judge(asked):
        return ["proved" if "winded" in one.style else "refused" for one, _ in asked]

    sizes = {"train": 62}
    splits, counts = build_splits(sizes, judge)
    assert len(splits["train"]) == 62 and all(row["style"].startswith("winded") for row in splits["train"])
    assert sum(counts.dropped.values()) > 5 and all(said.endswith(": refused") for said in counts.dropped)


def test_only_refused_mutants_are_kept():
    def judge(asked):
        return ["proved" if text == one.annotated or "+" in text else "refused" for one, text in asked]

    splits, counts = build_splits({"dev": 62}, judge)
    kept = [text for row in splits["dev"] for text in row["mutants"]]
    assert kept and not any("+" in text for text in kept)
    assert sum(count["refused"] for count in counts.mutants.values()) == len(kept)
    assert sum(count["proved"] for count in counts.mutants.values()) > 0
