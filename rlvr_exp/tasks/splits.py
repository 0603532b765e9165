"""Reproducible stratified splits by content. Knows keys and strata, nothing of a domain.

Membership follows the hash of an item's content, so a renamed or reordered data set has the same splits, and an added
item moves at most a few others, all of its own family. Items of one group are never separated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor

from rlvr_exp.core.seeds import uniform

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


def _family(heads: Sequence[Item], fractions: Sequence[float], seed: int) -> dict[str, int]:
    """Parts by group for one family, its heads sorted by band.

    Each part takes its share of what the parts before it left, band by band; the next band gets what rounding down
    withholds from a band, so the family's sum is off by less than one.
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
