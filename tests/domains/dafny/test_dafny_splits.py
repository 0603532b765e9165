"""Splits of Dafny examples: reproducible, stratified, and never with a near-duplicate, found by its definition, on the other side."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surface_programs import BY_METHOD, MAX, SUM

from rlvr_exp.domains.dafny.load import DafnyProgram, examples
from rlvr_exp.domains.dafny.problem import DafnyExample
from rlvr_exp.domains.dafny.splits import alike, band, constructs, near_duplicates, shingles, similarity, split_examples

OPERATORS = ("+", "-", "*", "==", "<", ">", "<=", ">=")


def of(text: str, name: str = "p") -> list[DafnyExample]:
    return examples(DafnyProgram(name, text, "f", name))


def straight(one: str, two: str) -> str:
    said = f"a {one} b {two} c"
    return f"method M(a: int, b: int, c: bool) returns (r: bool)\n  ensures r == ({said})\n{{ r := {said}; }}\n"


def looped(count: int) -> str:
    more = "".join(f"    x := x + {number} * {count};\n" for number in range(count))
    return f"method L(n: nat) returns (x: nat)\n  ensures x >= {count}\n{{\n  while x < n {{\n{more}  }}\n}}\n"


MANY = [one for a in OPERATORS for b in OPERATORS for one in of(straight(a, b), f"{a}{b}")]
MANY += [one for count in range(1, 13) for one in of(looped(count), f"loop{count}")]


def ids(parts: dict[str, list[DafnyExample]]) -> dict[str, set[str]]:
    return {name: {one.id for one in members} for name, members in parts.items()}


def test_every_example_is_in_one_part_and_parts_have_their_share() -> None:
    parts = split_examples(MANY, {"test": 0.25, "dev": 0.25})
    assert sorted(one.id for members in parts.values() for one in members) == sorted(one.id for one in MANY)
    assert all(0.1 * len(MANY) < len(members) for members in parts.values()) and set(parts) == {"train", "test", "dev"}


def test_order_and_names_decide_nothing() -> None:
    turned = [replace(one, id=f"new {one.id}") for one in reversed(MANY)]
    found = ids(split_examples(turned)).items()
    assert {name: {one.removeprefix("new ") for one in members} for name, members in found} == ids(split_examples(MANY))


def test_the_seed_decides() -> None:
    assert ids(split_examples(MANY, seed=1)) == ids(split_examples(MANY, seed=1)) != ids(split_examples(MANY, seed=2))


def test_each_construct_is_spread_over_the_parts() -> None:
    parts = split_examples(MANY, {"test": 0.5})
    loops = [sum("loop" in constructs(one) for one in members) for members in parts.values()]
    assert min(loops) >= 3, loops


def test_what_differs_by_a_token_is_alike_and_what_differs_by_half_is_not() -> None:
    texts = {"one": looped(12), "nearly": looped(12).replace("x + 11 *", "x - 11 *"), "other": looped(2)}
    groups = alike([example for name, text in texts.items() for example in of(text, name)])
    assert groups["one/L"] == groups["nearly/L"] != groups["other/L"]


@pytest.mark.parametrize("seed", range(8))
def test_near_duplicates_and_methods_of_one_program_stay_together(seed: int) -> None:
    tied = [*of(SUM, "sum"), *of(SUM.replace("Sum", "Add").replace("t := 0;", "t := 0 + 0;"), "nearly")]
    parts = ids(split_examples([*MANY, *tied], {"test": 0.5}, seed))
    assert [bool(members & {one.id for one in tied}) for members in parts.values()].count(True) == 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (SUM, ["loop", "sequence"]),
        (MAX, ["branch"]),
        (BY_METHOD, ["straight"]),
        ("lemma {:induction false} L(n: nat) { if n > 0 { L(n - 1); } }", ["lemma", "recursion", "branch"]),
        ("method {:fuel F(1)} F(a: array<int>) { a[0] := 1; }", ["array"]),
        ("method G(m: map<int, int>) { print m; }", ["set or map"]),
    ],
)
def test_constructs_of_an_example(text: str, wanted: list[str]) -> None:
    assert constructs(of(text)[-1]) == wanted


def test_length_bands_have_fixed_borders() -> None:
    assert [band(of(looped(count))[0]) for count in (1, 2, 12)] == [1, 1, 2]


def test_impossible_fractions_are_refused() -> None:
    with pytest.raises(ValueError, match="fractions"):
        split_examples(MANY, {"test": 0.8, "dev": 0.3})


SETS = st.dictionaries(
    st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3),
    st.frozensets(st.integers(0, 9).map(lambda number: (str(number),)), min_size=1),
    max_size=8,
)


def shingled(text: str) -> frozenset:
    return shingles(examples(DafnyProgram("p", text, "f", "s"))[-1])


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
