"""Folds partition the tasks: each in one test fold, alike ones together, families and difficulties spread."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.folds import folds_of, held_out
from rlvr_exp.tasks.splits import Item

SINGLE = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=7, max_size=80).map(
    lambda drawn: [Item(f"k{n}", f"g{n}", family, band) for n, (family, band) in enumerate(drawn)]
)
GROUPED = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from("abc"), st.integers(0, 9)), min_size=7, max_size=40
).map(
    lambda drawn: [
        Item(f"k{n}.{m}", f"g{n}", family, band) for n, (size, family, band) in enumerate(drawn) for m in range(size)
    ]
)
FOLDS = st.integers(2, 7)


def sizes(items, placed, folds):
    counts = Counter(placed[item.key] for item in items)
    return [counts[fold] for fold in range(folds)]


@pytest.mark.property(39)
@given(GROUPED, FOLDS)
def test_each_item_is_in_one_fold_with_its_group_whatever_the_order(items, folds) -> None:
    placed = folds_of(items, folds)
    assert set(placed) == {item.key for item in items} and set(placed.values()) == set(range(folds))
    assert placed == folds_of(items[::-1], folds)
    together = {(item.group, placed[item.key]) for item in items}
    assert len(together) == len({item.group for item in items})


@given(SINGLE, FOLDS)
def test_folds_of_single_items_differ_by_one_at_most_and_so_do_their_families(items, folds) -> None:
    placed = folds_of(items, folds)
    for some in (items, *([item for item in items if item.family == family] for family in "abc")):
        counts = sizes(some, placed, folds)
        assert max(counts) - min(counts) <= 1


@given(GROUPED, FOLDS)
def test_folds_of_groups_differ_by_little_more_than_the_largest(items, folds) -> None:
    counts, largest = sizes(items, folds_of(items, folds), folds), max(Counter(item.group for item in items).values())
    assert max(counts) - min(counts) <= 2 * largest


def test_difficulty_is_spread() -> None:
    items = [Item(f"k{n}", f"g{n}", "f", n // 10) for n in range(100)]
    placed = folds_of(items, 5)
    bands = Counter((item.band, placed[item.key]) for item in items)
    assert all(bands[band, fold] == 2 for band in range(10) for fold in range(5))


def test_content_decides_and_not_the_key() -> None:
    named = [folds_of([Item(f"{name}{n}", f"g{n}", "f", 0) for n in range(50)], 5) for name in "ab"]
    assert [named[0][f"a{n}"] for n in range(50)] == [named[1][f"b{n}"] for n in range(50)]


def test_fewer_groups_than_folds_are_refused() -> None:
    with pytest.raises(InputError, match="5 folds of 2 groups"):
        folds_of([Item(f"k{n}", f"g{n % 2}") for n in range(10)], 5)


@pytest.mark.property(39)
@given(SINGLE, FOLDS)
def test_the_held_out_parts_are_disjoint_and_their_union_is_the_pool(items, folds) -> None:
    third = len(items) // 3
    splits = {"train": items[:third], "dev": ["d"], "test": items[third : 2 * third], "practice": items[2 * third :]}
    pooled = ("train", "practice", "test")
    order = [item for name in pooled for item in splits[name]]
    placed = folds_of(order, folds)
    seen: list[Item] = []
    for fold in range(folds):
        found = held_out(splits, pooled, [placed[item.key] == fold for item in order])
        trained = [*found.get("train", ()), *found.get("practice", ())]
        assert (
            found["dev"] == ("d",) and {*trained} | {*found["test"]} == {*items} and not {*trained} & {*found["test"]}
        )
        assert {*found.get("train", ())} <= {*splits["train"]}, "what was tested is practised, not imitated"
        seen += found["test"]
    assert len(seen) == len(items) and {*seen} == {*items}


def test_without_practice_what_was_tested_is_trained_on() -> None:
    found = held_out({"train": ["a"], "test": ["b", "c"]}, ("train", "test"), [True, False, True])
    assert found == {"train": ("b",), "test": ("a", "c")}
    assert all(one < other for one, other in pairwise(found["test"]))
