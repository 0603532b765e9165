"""Near-duplicates are found whatever the names, and exactly by the definition."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from surface_programs import MAX, SUM

from rlvr_exp.domains.dafny.load import Program, examples
from rlvr_exp.domains.dafny.splits import near_duplicates, shingles, similarity

SETS = st.dictionaries(
    st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3),
    st.frozensets(st.integers(0, 9).map(lambda number: (str(number),)), min_size=1),
    max_size=8,
)


def shingled(text: str) -> frozenset:
    return shingles(examples(Program("p", text, "f", "s"))[-1])


@settings(deadline=None)
@given(SETS, st.sampled_from((0.3, 0.5, 0.7, 0.8, 1.0)))
def test_prefixes_lose_no_pair(sets: dict[str, frozenset], bound: float) -> None:
    wanted = {frozenset(pair) for pair in combinations(sets, 2) if similarity(*(sets[key] for key in pair)) >= bound}
    found = [frozenset(pair) for pair in near_duplicates(sets, bound)]
    assert set(found) == wanted and len(found) == len(wanted)


def test_names_comments_and_annotations_make_no_difference() -> None:
    renamed = SUM.replace("Total", "Tally").replace("t := t", "/* */ t := t").replace("  assert s[..i] == s;\n", "")
    assert shingled(SUM) == shingled(renamed)


def test_other_code_is_less_alike() -> None:
    assert similarity(shingled(MAX), shingled(MAX.replace(">", "<"))) < 0.7 < similarity(shingled(MAX), shingled(MAX))
