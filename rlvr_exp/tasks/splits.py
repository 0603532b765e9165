"""Splits: stratified by content, folds of a cross-validation, families, and bootstrap samples of the tasks to train on.

Membership of a split follows the hash of an item's content, so a renamed or reordered data set has the same splits, and an added
item moves at most a few others, all of its own family. Folds depend on the items and on their number alone; neither order nor
seed matters. Items of one group, such as near-duplicates, are never separated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import floor
from typing import Protocol, TypeVar

from rlvr_exp.config.names import suggest
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import stream, uniform
from rlvr_exp.tasks.rows import SPLITS

EPSILON = 1e-9


@dataclass(frozen=True)
class Item:
    """One item to place. `group` ties items that share content; `family` and `band` are the strata."""

    key: str
    group: str
    family: str = ""
    band: int = 0


def split(items: Iterable[Item], fractions: Sequence[float], seed: int) -> dict[str, int]:
    """Every item's part by key: 0 to len(fractions) - 1 for the requested parts, len(fractions) for the rest.

    Each family gives each part its share of groups, rounded once per family by its own draw, and spread over the
    bands. A requested part that stays empty takes one group of the rest while the rest holds more than one.

    Raises:
        ValueError: a fraction is negative, or their sum is above 1.
    """
    if min(fractions) < 0 or sum(fractions) > 1 + EPSILON:
        raise ValueError(f"split: fractions must be at least 0 and at most 1 in sum, got {fractions}")
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.key):
        groups.setdefault(item.group, []).append(item)
    heads = sorted((members[0] for members in groups.values()), key=lambda item: (item.family, item.band))
    parts: dict[str, int] = {}
    for _, family in groupby(heads, key=lambda item: item.family):
        parts |= _family(list(family), fractions, seed)
    _fill_empty(parts, fractions, seed)
    return {item.key: parts[group] for group, members in groups.items() for item in members}


def tied(contents: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A group for each key: keys that share a content, directly or through others, have the same group.

    A group is named by the least content in it, so that it depends on the items and not on their names.
    """
    parent: dict[str, str] = {}

    def root(content: str) -> str:
        while parent.setdefault(content, content) != content:
            parent[content] = content = parent[parent[content]]
        return content

    for own in contents.values():
        for content in own[1:]:
            low, high = sorted((root(own[0]), root(content)))
            parent[high] = low
    return {key: root(own[0]) for key, own in contents.items()}


class Placed(Protocol):
    """A row that may say its split."""

    @property
    def id(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def split(self) -> str: ...


PlacedRow = TypeVar("PlacedRow", bound=Placed)


def placed(
    rows: Sequence[PlacedRow],
    contents: Callable[[PlacedRow], Sequence[str]],
    key: Callable[[PlacedRow], Sequence[str]],
    fractions: tuple[float, float],
    seed: int,
) -> dict[str, list[PlacedRow]]:
    """Every row under its split, with the split in it: its own, or one that is drawn.

    Args:
        rows: dataclasses; of one that says no split, `split` is empty.
        contents: rows that share a content are drawn together.
        key: the texts whose hash decides the draw.
        fractions: shares of test and dev in the rows that are drawn.
    """
    free = {row.id: row for row in rows if not row.split}
    groups = tied({name: contents(row) for name, row in free.items()})
    keys = {name: content_hash(key(row)) for name, row in free.items()}
    items = [Item(keys[name], groups[name], row.family) for name, row in free.items()]
    parts = split(items, fractions, seed) if items else {}
    found: dict[str, list[PlacedRow]] = {name: [] for name in SPLITS}
    for row in rows:
        name = row.split or ("test", "dev", "train")[parts[keys[row.id]]]
        found[name].append(replace(row, split=name))  # type: ignore[type-var]  # A protocol cannot name dataclasses.
    return {name: kept for name, kept in found.items() if kept}


def _family(heads: Sequence[Item], fractions: Sequence[float], seed: int) -> dict[str, int]:
    """Parts by group for one family, its heads sorted by band.

    Each part takes its share of the groups that earlier parts left, band by band. The next band gets the remainder that
    rounding down withholds from a band, so the family's sum is off by less than one.
    """
    parts = {head.group: len(fractions) for head in heads}
    seen = [0] * len(fractions)
    shares = [fraction / max(1 - sum(fractions[:part]), EPSILON) for part, fraction in enumerate(fractions)]
    offsets = [uniform(seed, "split offset", heads[0].family, part) for part in range(len(fractions))]
    for _, members in groupby(heads, key=lambda item: item.band):
        pool = sorted((item.group for item in members), key=lambda group: _draw(seed, group))
        for part, (share, offset) in enumerate(zip(shares, offsets, strict=True)):
            count = _below(seen[part] + len(pool), share, offset) - _below(seen[part], share, offset)
            seen[part] += len(pool)
            parts |= dict.fromkeys(pool[:count], part)
            pool = pool[count:]
    return parts


def _below(count: int, share: float, offset: float) -> int:
    """How many of the first `count` a part takes. Shares are sums of decimals: 0.9999999999 of a task is a task."""
    return floor(count * min(share, 1.0) + offset * (1 - EPSILON) + EPSILON)


def _fill_empty(parts: dict[str, int], fractions: Sequence[float], seed: int) -> None:
    rest = sorted((group for group, part in parts.items() if part == len(fractions)), key=lambda g: _draw(seed, g))
    for part, fraction in enumerate(fractions):
        if fraction > 0 and part not in parts.values() and len(rest) > 1:
            parts[rest.pop(0)] = part


def _draw(seed: int, group: str) -> float:
    return uniform(seed, "split", group)


TRAIN, PRACTICE, TEST = "train", "practice", "test"
FOLDED = (TRAIN, PRACTICE, TEST)
"""Splits whose tasks are in folds if none are named; the others stay as they are."""
Kept = TypeVar("Kept")


def folds_of(items: Iterable[Item], folds: int) -> dict[str, int]:
    """The fold of each item by key, 0 to folds - 1.

    The groups of a family are dealt in the order of their bands, each to the fold that has the fewest items, those of the
    family counted twice. So folds of single items differ by at most one item, in each family too, and those of groups by
    little more than the largest group.

    Raises:
        InputError: there are fewer groups than folds.
    """
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.key):
        groups.setdefault(item.group, []).append(item)
    if len(groups) < folds:
        got, allowed = f"{folds} folds of {len(groups)} groups of alike tasks", f"at most {len(groups)} folds"
        raise InputError(
            InputProblem("data.folds", "a fold would be empty", got, allowed, "", "fewer folds, or more data")
        )
    placed: dict[str, int] = {}
    total = [0] * folds
    of_family: dict[str, list[int]] = {}
    for name in sorted(groups, key=lambda name: _order(name, groups[name])):
        members = groups[name]
        own = of_family.setdefault(members[0].family, [0] * folds)
        fold = min(range(folds), key=lambda fold: (own[fold] + total[fold], total[fold], uniform("fold", name, fold)))
        own[fold] += len(members)
        total[fold] += len(members)
        placed[name] = fold
    return {item.key: placed[name] for name, members in groups.items() for item in members}


def _order(name: str, members: Sequence[Item]) -> tuple[str, int, int, float]:
    """By family; the largest groups first, so that single items level the folds; then by band."""
    size = len(members)
    return members[0].family, -size if size > 1 else 0, members[0].band, uniform("fold", name)


def held_out(
    splits: Mapping[str, Sequence[Kept]], pooled: Sequence[str], out: Sequence[bool]
) -> dict[str, tuple[Kept, ...]]:
    """Splits whose `test` holds the held-out tasks of the pooled splits. Other tasks of `test` move to `practice` if
    that is pooled, else to `train`.

    Args:
        pooled: names of splits, whose tasks one after the other are `out` or not.
    """
    found: dict[str, list[Kept]] = {name: [] if name in pooled else list(tasks) for name, tasks in splits.items()}
    trained = PRACTICE if PRACTICE in pooled else TRAIN
    tasks = ((name, task) for name in pooled for task in splits[name])
    for (name, task), is_out in zip(tasks, out, strict=True):
        place = TEST if is_out else trained if name not in (TRAIN, PRACTICE) else name
        found.setdefault(place, []).append(task)
    return {name: tuple(kept) for name, kept in found.items() if kept}


UNSEEN = "test_unseen"
SHOWN = 8
"""Families that a message names."""


class OfFamily(Protocol):
    @property
    def family(self) -> str: ...


Member = TypeVar("Member", bound=OfFamily)


def by_family(
    splits: Mapping[str, Sequence[Member]], families: Sequence[str], unseen: Sequence[str]
) -> dict[str, list[Member]]:
    """The splits, of these families alone if any are named; those of unseen families are all of `test_unseen`.

    Doing it a second time changes nothing. Splits without a task are left out where families are named.
    """
    if not families and not unseen:
        return {name: [*found] for name, found in splits.items()}
    wanted, held_out = {*families}, {*unseen}
    kept = {
        name: [one for one in found if one.family not in held_out and (not wanted or one.family in wanted)]
        for name, found in splits.items()
    }
    if held_out:
        measured = [
            found for name, found in splits.items() if name in SPLITS
        ]  # Not what can be neither learned nor judged.
        kept[UNSEEN] = [one for found in measured for one in found if one.family in held_out]
    return {name: found for name, found in kept.items() if found}


def refuse_unknown(splits: Mapping[str, Sequence[OfFamily]], families: Sequence[str], unseen: Sequence[str]) -> None:
    """Raises InputError if a family that is named has no task in any split."""
    known = {one.family for found in splits.values() for one in found} if families or unseen else set()
    faults = []
    for key, named in (("families", families), ("unseen_families", unseen)):
        for absent in (name for name in named if name not in known):
            allowed = ", ".join(sorted(known)[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
            faults.append(
                InputProblem(f"data.{key}", "no task is of this family", absent, allowed, suggest(absent, known))
            )
    if faults:
        raise InputError(*faults)


def resampled(splits: Mapping[str, Sequence[Member]], seed: int) -> dict[str, tuple[Member, ...]]:
    """The splits with a bootstrap sample of each that is trained on: as many tasks, drawn with replacement (Efron 1979), in
    their order. The number of the seed decides, 0 changes nothing."""
    found = {name: tuple(tasks) for name, tasks in splits.items()}
    for name in (TRAIN, PRACTICE) if seed else ():
        if tasks := found.get(name):
            places = sorted(stream("resample", seed, name).choices(range(len(tasks)), k=len(tasks)))
            found[name] = tuple(tasks[place] for place in places)
    return found
