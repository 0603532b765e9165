from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_sets import first_of, own_rows

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import EMBEDDED as ARC
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.tasks import EMBEDDED as DAFNY
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import EMBEDDED as EDITS
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.rows import EMBEDDED as PROBLEMS
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.splits import Item, by_family, folds_of, held_out, resampled, split, tied

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


STAGES = {"code": ReasoningStage(form="code")}


@pytest.fixture(scope="module", params=["arc", "dafny", "edits", "problems", "code"])
def domain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("rows")
    made = {
        "arc": lambda: Arc(first_of(ARC, folder)),
        "dafny": lambda: DafnyDomain(first_of(DAFNY, folder)),
        "edits": lambda: Edits(first_of(EDITS, folder)),
        "problems": lambda: Problems(first_of(PROBLEMS, folder), reasoning=STAGES),
        "code": lambda: Code(own_rows(folder)),
    }
    return made[request.param]()


def families(domain: Domain) -> dict[str, set[str]]:
    return {name: {task.family for task in tasks} for name, tasks in domain.splits().items()}


def two_families(domain: Domain) -> list[str]:
    counts = Counter(task.family for tasks in domain.splits().values() for task in tasks)
    return [family for family, _ in counts.most_common(2)]


def test_splits_keep_the_named_families_alone(domain: Domain) -> None:
    first, *_ = two_families(domain)
    found = replace(domain, families=[first])
    assert set().union(*families(found).values()) == {first}
    for name, tasks in domain.splits().items():
        kept = [task.id for task in tasks if task.family == first]
        assert [task.id for task in found.splits().get(name, ())] == kept
    assert found.sizes() == {name: len(tasks) for name, tasks in found.splits().items()}
    assert "1 families alone" in found.splits_note() and not found.as_read


def test_unseen_families_are_in_no_other_split_and_a_limit_counts_what_is_left(domain: Domain) -> None:
    first, *second = two_families(domain)
    held_out = replace(domain, unseen_families=[first])
    splits = held_out.splits()
    assert {task.family for task in splits["test_unseen"]} == {first}
    others = {task.family for name, tasks in splits.items() if name != "test_unseen" for task in tasks}
    assert first not in others and others >= {*second}
    every = {task.id for tasks in domain.splits().values() for task in tasks if task.family == first}
    assert {task.id for task in splits["test_unseen"]} == every
    limited = replace(held_out, limit=3)
    assert len(limited.splits()["test_unseen"]) == min(3, len(every))
    assert all(len(limited.splits()[name]) == min(3, len(tasks)) for name, tasks in splits.items())


def test_training_tasks_are_drawn_with_replacement_and_the_others_stay(domain: Domain) -> None:
    one, again, other = (replace(domain, resample=seed) for seed in (1, 1, 2))
    ids = [[task.id for task in found.splits()["train"]] for found in (domain, one, again, other)]
    assert ids[1] == ids[2] != ids[3] and len(ids[0]) == len(ids[1]) == len(ids[3])
    assert {*ids[1]} < {*ids[0]} and max(Counter(ids[1]).values()) > 1
    assert [task.id for task in one.splits()["test"]] == [task.id for task in domain.splits()["test"]]
    assert one.fingerprint("train") != domain.fingerprint("train")
    assert one.fingerprint("test") == domain.fingerprint("test")


def test_a_family_that_is_not_there_is_refused_with_the_nearest(domain: Domain) -> None:
    first, *_ = two_families(domain)
    with pytest.raises(InputError, match=r"data\.unseen_families: no task is of this family(.|\n)*did you mean: "):
        replace(domain, unseen_families=[f"{first}s"]).splits()


def test_a_family_is_not_both() -> None:
    assert [one.where for one in Arc(families=["a", "b"], unseen_families=["b"]).problems()] == ["unseen_families"]


def test_shots_of_an_unseen_task_are_of_other_families(tmp_path: Path) -> None:
    plain = Arc(first_of(ARC, tmp_path), prompt=Prompt(shots=3))
    first, *_ = two_families(plain)
    found = replace(plain, unseen_families=[first])
    assert found.splits()["test_unseen"] and all(record.family != first for record in found._solved)


class Member:
    def __init__(self, family: str):
        self.family = family


def test_choosing_twice_changes_nothing() -> None:
    splits = {"train": [Member(name) for name in "abcab"], "test": [Member("b")], "test_unseen": [Member("d")]}
    once = by_family(splits, ["a", "c", "b"], ["d"])
    assert by_family(once, ["a", "c", "b"], ["d"]) == once
    assert [one.family for one in once["test_unseen"]] == ["d"] and len(once["train"]) == 5
    assert resampled(splits, 0) == {name: tuple(found) for name, found in splits.items()}
