"""Reproducible stratified splits by content. Knows keys and strata, nothing of a domain.

Membership follows the hash of an item's content, so a renamed or reordered data set splits alike, and an added item
moves at most a few of its own family: one across each border of a band. Items of one group are never torn apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor

from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.core.seeds import uniform


@dataclass(frozen=True)
class Item:
    """One thing to place. `group` ties items that share content; `family` and `band` are the strata."""

    key: str
    group: str
    family: str = ""
    band: int = 0


def split(items: Iterable[Item], fractions: Sequence[float], seed: int) -> dict[str, int]:
    """Every item's part by key: 0 to len(fractions) - 1 for the parts asked for, len(fractions) for the rest.

    Each family gives each part its share of groups, rounded once per family by a draw of its own, and spread over the
    bands. A wanted part that this leaves empty takes one group of the rest while that holds more than one.

    Raises:
        InputError: a fraction is outside [0, 1), or all of them leave no rest.
    """
    if any(not 0 <= fraction < 1 for fraction in fractions) or sum(fractions) >= 1:
        given = ", ".join(map(str, fractions))
        raise InputError(Problem("data: split fractions", "out of range", given, "each in [0, 1), below 1 in sum"))
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
    """A group for each key: keys that share a content, directly or through others, have the same.

    A group is named by the least content in it, so that it follows what the items are and not what they are called.
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


def _family(heads: Sequence[Item], fractions: Sequence[float], seed: int) -> dict[str, int]:
    """Parts by group for one family, its heads sorted by band."""
    offset = uniform(seed, "split offset", heads[0].family)
    parts, seen = {}, 0
    for _, members in groupby(heads, key=lambda item: item.band):
        band = sorted(members, key=lambda item: _draw(seed, item.group))
        borders = _borders(seen, seen + len(band), fractions, offset)
        for rank, item in enumerate(band):
            parts[item.group] = sum(rank >= border for border in borders)
        seen += len(band)
    return parts


def _borders(start: int, end: int, fractions: Sequence[float], offset: float) -> list[int]:
    """Ranks at which the parts of one band end: the running share of the family, rounded down after the offset."""
    total, borders = 0.0, []
    for fraction in fractions:
        total += fraction
        borders.append(floor(end * total + offset) - floor(start * total + offset))
    return borders


def _fill_empty(parts: dict[str, int], fractions: Sequence[float], seed: int) -> None:
    rest = sorted((group for group, part in parts.items() if part == len(fractions)), key=lambda g: _draw(seed, g))
    for part, fraction in enumerate(fractions):
        if fraction > 0 and part not in parts.values() and len(rest) > 1:
            parts[rest.pop(0)] = part


def _draw(seed: int, group: str) -> float:
    return uniform(seed, "split", group)
