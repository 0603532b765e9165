"""Folds of a cross-validation: every item in one of N parts of nearly equal size, stratified by family and difficulty.

A pure function of the items and of N: neither their order nor a seed has a part in it. Items of one group, such as
near-duplicates, are in one fold. Knows keys and strata, nothing of a domain.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.tasks.splits import Item

TRAIN, PRACTICE, TEST = "train", "practice", "test"
FOLDED = (TRAIN, PRACTICE, TEST)
"""Splits whose tasks are in folds where none are named; the others stay as they are."""
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
    """Splits in which `test` is what is held out of the pooled ones. What was in `test` and is not held out is trained on:
    `practice`, where it is pooled, else `train`.

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
