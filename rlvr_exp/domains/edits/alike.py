"""Likeness of edits, the splits of groups of rows that are alike, and rows that share content with held-out tasks.

Likeness is that of MinHash signatures (Broder, "On the resemblance and containment of documents", 1997). An edit is represented
by the runs of five tokens in its texts before and after. The share of equal numbers in two signatures estimates the Jaccard
similarity of their sets, with a standard error of at most 0.045. Two edits are compared if all numbers of one band are equal;
bands are chosen for the bound, missing as few pairs above it as can be.

Rows with a band in common are compared by their signatures: each with the rows of the band that were alike to none before it
(its heads), in the order of their content, so that no order of lines and files decides. The bands are sorted on disk. In memory
are the heads of one band, at most HEADS, and in a file that the system maps, 4 bytes a row. Rows that are alike, directly or
through others, stay in one split: in `test` if the set of one of them keeps it there, else in `dev`, else in a split drawn by the
least content hash of the group.

A row shares content with a held-out task if one of its programs is one of the task's, or has one of the task's definitions of at
least three statements, whatever names, comments and layout (rlvr_exp.tasks.content), or if the two are alike. In memory are the
keys and signatures of the held-out tasks, and nothing of the rows.
"""

import re
import sqlite3
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from datasketch import MinHash, MinHashLSH

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.rows import METADATA, NormalizedRecord
from rlvr_exp.domains.edits.rows import load as load_rows
from rlvr_exp.tasks.code_sets import load
from rlvr_exp.tasks.content import Shape, keyed_parts, text_key
from rlvr_exp.tasks.formats.base import CodeInputs

PERMUTATIONS, WIDTH = 128, 5
"""Numbers of a signature; tokens of a run."""
MISSED = (0.1, 0.9)
"""How pairs compared in vain and pairs missed are weighed in the choice of bands."""
Signature = np.ndarray
"""uint32, (PERMUTATIONS,)."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
HEADS = 1000
"""Rows of one band that later ones are compared with."""
SAME_EDIT, SAME_ID, ALIKE = "the same edit as another row", "the id of another row", "alike to another row"
RANKED = ("", "train", "dev", "test")
"""Splits that rows demand, from the weakest to the strongest."""
_PLACED = """
CREATE TABLE placed AS
WITH heads AS (SELECT root, min(key) AS head,
                     max(CASE demanded WHEN 'test' THEN 3 WHEN 'dev' THEN 2 WHEN 'train' THEN 1 ELSE 0 END) AS rank
              FROM rows JOIN grouped USING (n) GROUP BY root),
     ranked AS (SELECT rows.n AS n, grouped.root AS root,
                       row_number() OVER (PARTITION BY rows.key ORDER BY rows.id, rows.n) AS same
                FROM rows JOIN grouped USING (n)),
     single AS (SELECT ranked.n AS n, ranked.root AS root, ranked.same AS same,
                       row_number() OVER (PARTITION BY rows.id, ranked.same > 1 ORDER BY rows.key, rows.n)
                           AS named,
                       row_number() OVER (PARTITION BY ranked.root, ranked.same > 1 ORDER BY rows.key, rows.n) AS first
                FROM ranked JOIN rows USING (n))
SELECT single.n AS n, place(head, rank) AS split,
       CASE WHEN same > 1 THEN :same WHEN named > 1 THEN :named WHEN :single AND first > 1 THEN :alike ELSE '' END AS reason
FROM single JOIN heads USING (root) ORDER BY single.n
"""
HELD_OUT = "shares content with a held-out task"
SPLITS = ("dev", "test")
"""What is held out of the output of an earlier run."""


def signature(*texts: str) -> Signature:
    """The signature of the runs in all texts together."""
    runs: set[bytes] = set()
    for text in texts:
        tokens = _TOKEN.findall(text)
        runs.update(" ".join(tokens[at : at + WIDTH]).encode() for at in range(max(1, len(tokens) - WIDTH + 1)))
    found = MinHash(PERMUTATIONS, hashfunc=zlib.crc32, permutations=_permutations(), scheme="affine32")
    found.update_batch(runs)
    return found.hashvalues.astype(np.uint32)


@cache  # Drawing permutations takes longer than hashing a program.
def _permutations() -> tuple[np.ndarray, np.ndarray]:
    return MinHash(PERMUTATIONS).permutations


def bands_of(numbers: Signature, similarity: float) -> list[int]:
    """The band keys of a signature: 64-bit integers, signed; equal keys are equal bands."""
    count, width = layout(similarity)
    packed = numbers[: count * width].astype("<u4").tobytes()
    bands = [packed[4 * width * at : 4 * width * (at + 1)] for at in range(count)]
    digests = (blake2b(band, digest_size=8, key=at.to_bytes(2, "big")).digest() for at, band in enumerate(bands))
    return [int.from_bytes(digest, "big", signed=True) for digest in digests]


def likeness(numbers: Signature, others: Signature) -> Signature:
    """Estimated similarity to each of `others`, (n, PERMUTATIONS): (n,)."""
    return (others == numbers).mean(axis=1)


@cache
def layout(similarity: float) -> tuple[int, int]:
    """Number of bands and numbers in a band."""
    chosen = MinHashLSH(threshold=similarity, num_perm=PERMUTATIONS, weights=MISSED)
    return chosen.b, chosen.r


class DisjointSets:
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


def group_alike(db: sqlite3.Connection, file: Path, similarity: float) -> DisjointSets:
    """The groups of all rows of an index."""
    groups = DisjointSets(file, db.execute("SELECT count(*) FROM rows").fetchone()[0])
    signatures = np.empty((HEADS, PERMUTATIONS), np.uint32)
    # Of the heads of one band.
    sorted_bands = db.execute("SELECT band, n FROM bands ORDER BY band, place, n")
    for _, found in groupby(sorted_bands, key=itemgetter(0)):
        members = (n for _, n in found)
        first, second = next(members), next(members, None)
        if second is None:
            continue
        heads: list[int] = []
        for n in chain((first, second), members):
            numbers = np.frombuffer(db.execute("SELECT signature FROM rows WHERE n = ?", (n,)).fetchone()[0], "<u4")
            alike = np.flatnonzero(likeness(numbers, signatures[: len(heads)]) >= similarity)
            for at in alike:
                groups.join(n, heads[at])
            if not len(alike) and len(heads) < HEADS:
                signatures[len(heads)] = numbers
                heads.append(n)
    return groups


def place(db: sqlite3.Connection, groups: DisjointSets, options: EditSets, seed: int) -> None:
    """Write the table `placed`: n, split, and the reason why a row is dropped after all, or nothing."""

    def split_of(head: bytes, rank: int) -> str:
        return RANKED[rank] or drawn(head, options.test_fraction, options.dev_fraction, seed)

    db.create_function("place", 2, split_of, deterministic=True)
    db.execute("DROP TABLE IF EXISTS grouped")
    db.execute("DROP TABLE IF EXISTS placed")
    db.execute("CREATE TABLE grouped (n INTEGER PRIMARY KEY, root INTEGER)")
    db.executemany("INSERT INTO grouped VALUES (?, ?)", groups.roots())
    single = options.near_duplicates == "drop"
    db.execute(_PLACED, {"same": SAME_EDIT, "named": SAME_ID, "alike": ALIKE, "single": single})
    db.commit()


def drawn(head: bytes, test: float, dev: float, seed: int) -> str:
    """The split of a group by the least content hash in it."""
    number = uniform(seed, "edits split", head.hex())
    return "test" if number < test else "dev" if number < test + dev else "train"


class HeldOut:
    """The tasks of some paths, by content.

    Raises:
        InputError: a path has no set.
    """

    def __init__(self, paths: Sequence[str], similarity: float):
        self._similarity = similarity
        self._keys: dict[str, str] = {}
        self._shapes: set[Shape] = {()}
        self._bands: dict[int, list[int]] = {}
        self._names: list[str] = []
        signatures = []
        for path in paths:
            for name, language, texts in _tasks(Path(path)):
                for shape, key in _parts(texts, language):
                    self._keys[key] = name
                    self._shapes.add(shape)
                signatures.append(signature(*texts))
                for band in bands_of(signatures[-1], similarity):
                    self._bands.setdefault(band, []).append(len(self._names))
                self._names.append(name)
        self._signatures = np.stack(signatures) if signatures else np.empty((0, 0), np.uint32)

    @property
    def count(self) -> int:
        """Tasks held out."""
        return len(self._names)

    @property
    def fingerprint(self) -> str:
        """Hash of the held-out content; empty if there is none."""
        return content_hash(sorted(self._keys)) if self._names else ""

    def sharing(self, record: NormalizedRecord, numbers: Signature) -> str:
        """The id of a task that a record, whose signature is given, shares content with; empty if there is none."""
        if not self._names:
            return ""
        texts = [text for text in (record.before, record.after) if text]
        for _, key in _parts(texts, record.language, self._shapes):
            if key in self._keys:
                return self._keys[key]
        near = sorted({at for band in bands_of(numbers, self._similarity) for at in self._bands.get(band, ())})
        if not near:
            return ""
        found = likeness(numbers, self._signatures[near])
        return self._names[near[int(found.argmax())]] if found.max() >= self._similarity else ""


def _tasks(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Id, language and programs of every held-out task at a path."""
    if (path / METADATA).is_file():
        for row in (row for split in SPLITS if (path / split).is_dir() for row in load_rows(path / split)):
            yield row.id, row.language, [text for text in (row.before, row.after) if text]
        return
    for task in load(path):
        before = task.inputs.before if isinstance(task.inputs, CodeInputs) else ""
        yield task.id, "python", list(dict.fromkeys(filter(None, (before, task.gold, *task.negatives))))


def _parts(texts: Iterable[str], language: str, wanted: Container[Shape] | None = None) -> Iterator[tuple[Shape, str]]:
    """Shape and key of all that texts may share with others."""
    for text in texts:
        if language == "python":
            yield from keyed_parts(text, wanted)
        else:
            yield (), text_key(text)
