from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.splits import Item, split, tied

ITEMS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=0, max_size=80).map(
    lambda drawn: [Item(f"k{n}", f"g{n}", family, band) for n, (family, band) in enumerate(drawn)]
)
FRACTIONS = st.sampled_from(
    [(0.2, 0.1), (0.1, 0.1), (0.0, 0.3), (0.5, 0.5), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3,)]
)


@given(ITEMS, FRACTIONS, st.integers(0, 5))
def test_every_item_has_one_part_whatever_the_order(items: list[Item], fractions: tuple, seed: int) -> None:
    parts = split(items, fractions, seed)
    assert parts == split(reversed(items), fractions, seed)
    assert set(parts) == {item.key for item in items}
    assert set(parts.values()) <= set(range(len(fractions) + 1))


@given(ITEMS, FRACTIONS, st.integers(0, 5))
def test_each_family_is_near_its_share(items: list[Item], fractions: tuple, seed: int) -> None:
    parts = split(items, fractions, seed)
    for family in "abc":
        own = [parts[item.key] for item in items if item.family == family]
        for part, fraction in enumerate(fractions):
            assert abs(own.count(part) - fraction * len(own)) < 2 + 1  # two roundings, and one to fill an empty part


@given(ITEMS.filter(len), FRACTIONS, st.integers(0, 5), st.tuples(st.sampled_from("abc"), st.integers(0, 3)))
def test_an_added_item_moves_few_and_none_of_another_family(
    items: list[Item], fractions: tuple, seed: int, new: tuple[str, int]
) -> None:
    before = split(items, fractions, seed)
    after = split([*items, Item("new", "new", *new)], fractions, seed)
    moved = [item for item in items if before[item.key] != after[item.key]]
    bands = len({item.band for item in items if item.family == new[0]} | {new[1]})
    assert len([item for item in moved if item.family == new[0]]) <= 4 * bands + len(fractions)
    assert len([item for item in moved if item.family != new[0]]) <= len(fractions)  # a part no longer filled by force


def test_a_large_set_hardly_moves() -> None:
    items = [Item(f"k{n}", f"g{n}", "f", n % 5) for n in range(500)]
    before, after = (split(some, (0.2, 0.1), 0) for some in (items, [*items, Item("new", "new", "f", 0)]))
    assert sum(before[key] != after[key] for key in before) <= 10


def test_members_of_a_group_stay_together_and_bands_are_spread() -> None:
    items = [Item(f"k{n:03}", f"g{n // 2}", "f", n // 2 % 5) for n in range(200)]
    parts = split(items, (0.2, 0.1), 3)
    assert all(parts[f"k{n:03}"] == parts[f"k{n + 1:03}"] for n in range(0, 200, 2))
    assert Counter(item.band for item in items if parts[item.key] == 0) == dict.fromkeys(range(5), 8)


def test_the_seed_and_the_content_decide_and_not_the_key() -> None:
    items = [Item(f"k{n}", f"g{n}") for n in range(100)]
    renamed = [Item(f"other{n}", f"g{n}") for n in range(100)]
    parts = split(items, (0.5,), 0)
    assert {key.removeprefix("other"): part for key, part in split(renamed, (0.5,), 0).items()} == {
        key.removeprefix("k"): part for key, part in parts.items()
    }
    assert parts != split(items, (0.5,), 1)


@pytest.mark.parametrize("seed", range(10))
def test_no_wanted_part_of_a_small_set_is_empty(seed: int) -> None:
    parts = split([Item(str(n), str(n)) for n in range(3)], (0.1, 0.1), seed)
    assert set(parts.values()) == {0, 1, 2}
    assert set(split([Item("a", "a")], (0.1, 0.1), seed)) == {"a"}


@pytest.mark.parametrize("fractions", [(-0.1,), (0.6, 0.5), (1.1,)])
def test_impossible_fractions_are_refused(fractions: tuple) -> None:
    with pytest.raises(ValueError, match="at most 1 in sum"):
        split([], fractions, 0)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("012345"), min_size=1, max_size=3)))
def test_tied_joins_exactly_what_shares(contents: dict[str, list[str]]) -> None:
    groups = tied(contents)
    reached = {key: {key} for key in contents}
    for _ in contents:
        for key in contents:
            reached[key] |= {o for k in reached[key] for o in contents if set(contents[k]) & set(contents[o])}
    for key in contents:
        assert {other for other in contents if groups[other] == groups[key]} == reached[key]
        assert groups[key] == min(c for other in reached[key] for c in contents[other])
