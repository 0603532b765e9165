"""Groups of rows that are alike, directly or through others: they stay in one split.

Rows with a band in common are compared by their signatures: each with the rows of the band that were alike to none
before it (its heads), in the order of their content, so that no order of lines and files decides. The bands are sorted on disk; in
memory are the heads of one band, at most HEADS, and in a file that the system maps, 4 bytes a row.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from rlvr_exp.corpora.edit_sets.signature import PERMUTATIONS, likeness

HEADS = 1000
"""Rows of one band that later ones are compared with."""


class Groups:
    """Disjoint sets of the numbers 0 to count - 1, in a file."""

    def __init__(self, file: Path, count: int):
        self._parent = np.lib.format.open_memmap(file, "w+", np.uint32, (max(count, 1),))
        self._count = count
        for at in range(0, count, 1 << 20):
            end = min(at + (1 << 20), count)
            self._parent[at:end] = np.arange(at, end, dtype=np.uint32)

    def root(self, number: int) -> int:
        """The least number of a group."""
        parent = self._parent
        while (above := int(parent[number])) != number:
            parent[number] = parent[above]
            number = int(parent[number])
        return number

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.root(one), self.root(other)))
        self._parent[high] = low

    def roots(self) -> Iterator[tuple[int, int]]:
        """Every number with its group's."""
        return ((number, self.root(number)) for number in range(self._count))


def group_alike(db: sqlite3.Connection, file: Path, similarity: float) -> Groups:
    """The groups of all rows of an index."""
    groups = Groups(file, db.execute("SELECT count(*) FROM rows").fetchone()[0])
    sorted_bands = db.execute("SELECT band, n FROM bands ORDER BY band, place, n")
    for _, found in groupby(sorted_bands, key=itemgetter(0)):
        members = (n for _, n in found)
        first, second = next(members), next(members, None)
        if second is not None:
            _join_alike(db, groups, chain((first, second), members), similarity)
    return groups


def _join_alike(db: sqlite3.Connection, groups: Groups, members: Iterable[int], similarity: float) -> None:
    """Join the rows of one band."""
    heads: list[int] = []
    signatures = np.empty((HEADS, PERMUTATIONS), np.uint32)
    for n in members:
        numbers = np.frombuffer(db.execute("SELECT signature FROM rows WHERE n = ?", (n,)).fetchone()[0], "<u4")
        alike = np.flatnonzero(likeness(numbers, signatures[: len(heads)]) >= similarity)
        for at in alike:
            groups.join(n, heads[at])
        if not len(alike) and len(heads) < HEADS:
            signatures[len(heads)] = numbers
            heads.append(n)
