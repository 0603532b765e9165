"""What is known of every row while a set is read, in one SQLite file, and the rows themselves in a spool beside it.

Both are of the folder `.ingest` in the output, which is removed at the end. A commit writes the rows, the lines dropped and
the places up to which files are read as one, so that after kill -9 at any time the reading is continued from the last
commit: what the spool holds past it is cut off. On disk a row takes about 1.3 KB besides its text; in memory nothing.

From the index come the files of rows, `SPLIT/SET.jsonl` for every split and set that has rows, `dropped.csv` with every line
that gave none, and the counts of `stats.md`. They are complete under their names, and the same bytes whatever was killed on
the way.
"""

import csv
import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import checksum
from rlvr_exp.domains.edits.ingest.alike import RANKED
from rlvr_exp.domains.edits.ingest.lines import name_below
from rlvr_exp.domains.edits.ingest.normalize import Place, SetReader

FOLDER = ".ingest"
CACHE_KB = 2048
"""Memory that SQLite may use for its pages and for sorting, whatever the number of rows."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shards (shard INTEGER PRIMARY KEY, position INTEGER, number INTEGER, done INTEGER);
CREATE TABLE IF NOT EXISTS dropped (shard INTEGER, number INTEGER, reason TEXT, detail TEXT);
CREATE TABLE IF NOT EXISTS bands (band INTEGER, place INTEGER, n INTEGER);
CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, shard INTEGER, number INTEGER, id TEXT, key BLOB, demanded TEXT,
    source TEXT, language TEXT, licence TEXT, answered INTEGER, tested INTEGER, characters INTEGER, tokens INTEGER,
    bytes INTEGER, signature BLOB);
"""
_INSERT = """
INSERT INTO rows VALUES (:n, :shard, :number, :id, :key, :demanded, :source, :language, :licence, :answered, :tested, :characters,
    :tokens, :bytes, :signature)
"""
DROPPED = "dropped.csv"
GB = 1e9
_KEPT = """
SELECT split_of.split, source, count(*), sum(characters), sum(tokens), sum(bytes), sum(answered), sum(tested)
FROM rows JOIN (SELECT n, split FROM placed WHERE reason = '') AS split_of USING (n)
GROUP BY split_of.split, source ORDER BY split_of.split, source
"""
_NAMES = ("split", "source", "records", "characters", "tokens", "bytes", "with_after", "with_tests")
_BY = "SELECT {0}, count(*) FROM rows JOIN placed USING (n) WHERE reason = '' GROUP BY {0} ORDER BY count(*) DESC, {0}"
_REASONS = """
SELECT reason, count(*) FROM (SELECT reason FROM dropped UNION ALL SELECT reason FROM placed WHERE reason != '')
GROUP BY reason ORDER BY count(*) DESC, reason
"""
_GROUPS = "SELECT count(DISTINCT root), coalesce(max(size), 0) FROM (SELECT root, count(*) AS size FROM grouped GROUP BY root)"
_EVERY = """
SELECT shard, number, reason, detail FROM dropped
UNION ALL SELECT shard, number, reason, '' FROM rows JOIN placed USING (n) WHERE reason != ''
ORDER BY shard, number
"""


@dataclass(frozen=True)
class Shard:
    """One file of a set."""

    number: int
    file: Path
    reader: SetReader
    place: Place

    @property
    def name(self) -> str:
        return name_below(self.file, self.place.root)


@dataclass(frozen=True)
class Indexed:
    """One row to be kept: what decides its split, and what is counted."""

    shard: int
    number: int
    id: str
    key: bytes
    """Hash of the content: equal edits have equal keys."""
    demanded: str
    """The split that its row demands; empty: drawn."""
    source: str
    language: str
    licence: str
    answered: bool
    tested: bool
    characters: int
    tokens: int
    text: str
    """Its line of JSON."""
    signature: bytes
    bands: tuple[int, ...]


class Index:
    """The index and the spool of one output, claimed for this process.

    Args:
        provenance: all that decides the rows, in values of JSON.

    Raises:
        InputError: another run writes there, or other rows were begun there.
    """

    def __init__(self, output: Path, provenance: Mapping[str, Any]):
        self.folder = output / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder / "lock", "wb")
        try:
            self._claim(output)
            self.db = sqlite3.connect(self.folder / "index.sqlite")
            for setting in (
                "journal_mode = WAL",
                "synchronous = NORMAL",
                f"cache_size = -{CACHE_KB}",
                "temp_store = FILE",
            ):
                self.db.execute(f"PRAGMA {setting}")
            self.db.executescript(_SCHEMA)
            self._check(provenance, output)
        except BaseException:
            self._lock.close()
            raise
        self._spool = open(self.folder / "rows.jsonl", "ab")
        self._spool.truncate(int(self._meta("spool") or 0))
        self._spool.seek(0, os.SEEK_END)
        self._size = self._spool.tell()
        self._next = self.db.execute("SELECT coalesce(max(n), -1) + 1 FROM rows").fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()
        self.db.close()
        self._lock.close()

    def progress(self, shard: int) -> tuple[int, int, bool]:
        """Place and number of the last line of a file that is indexed, and whether the file is done."""
        found = self.db.execute("SELECT position, number, done FROM shards WHERE shard = ?", (shard,)).fetchone()
        return (found[0], found[1], bool(found[2])) if found else (0, 0, False)

    def add(self, row: Indexed) -> None:
        """Add a row; it is there for good with the next commit."""
        data = row.text.encode("ascii") + b"\n"
        self._spool.write(data)
        self._size += len(data)
        n, self._next = self._next, self._next + 1
        self.db.execute(_INSERT, {"n": n, "bytes": len(data), **vars(row)})
        place = int.from_bytes(row.key[:8], "big", signed=True)
        self.db.executemany("INSERT INTO bands VALUES (?, ?, ?)", [(band, place, n) for band in row.bands])

    def drop(self, shard: int, number: int, reason: str, detail: str) -> None:
        """Note a line that gives no row."""
        detail = detail.encode("utf-8", "backslashreplace").decode()[:300]
        self.db.execute("INSERT INTO dropped VALUES (?, ?, ?, ?)", (shard, number, reason, detail))

    def commit(self, shard: int, position: int, number: int, done: bool) -> None:
        """Keep all that was added, and the place up to which a file is read."""
        self._spool.flush()
        os.fsync(self._spool.fileno())
        self.db.execute("INSERT OR REPLACE INTO shards VALUES (?, ?, ?, ?)", (shard, position, number, done))
        self._set("spool", str(self._size))
        self.db.commit()

    def spooled(self) -> Iterator[bytes]:
        """The line of every row, in the order of their numbers."""
        self._spool.flush()
        with open(self.folder / "rows.jsonl", "rb") as lines:
            yield from lines

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        shutil.rmtree(self.folder)

    def _meta(self, name: str) -> str | None:
        found = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def _set(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _claim(self, output: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise InputError(InputProblem("prepare.output", "another run writes there", str(output))) from fault

    def _check(self, provenance: Mapping[str, Any], output: Path) -> None:
        now, before = json.dumps(provenance, sort_keys=True), self._meta("provenance")
        if before is None:
            self._set("provenance", now)
            self.db.commit()
        elif before != now:
            raise other_rows(output, json.loads(before), provenance)


def other_rows(output: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> InputError:
    """The refusal of a folder whose rows were made otherwise; names what differs."""
    old, new = _flat(before), _flat(now)
    differs = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    what, remedy = f"holds rows made otherwise: {', '.join(differs)}", "name another folder, or remove this one"
    return InputError(
        InputProblem("prepare.output", what, str(output), "an empty folder, or the same options", "", remedy)
    )


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {above + key: value}
    return found


def counts_of(db: sqlite3.Connection) -> dict[str, Any]:
    """All counts, in values of JSON."""
    kept = [dict(zip(_NAMES, row, strict=True)) for row in db.execute(_KEPT)]
    kept.sort(key=lambda row: (RANKED.index(row["split"]), row["source"]))
    groups, largest = db.execute(_GROUPS).fetchone()
    read = db.execute("SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM dropped)").fetchone()[0]
    return {
        "lines": read,
        "records": sum(row["records"] for row in kept),
        "splits": kept,
        "dropped": dict(db.execute(_REASONS).fetchall()),
        "groups": groups,
        "largest_group": largest,
    }


def tally(db: sqlite3.Connection, column: str) -> dict[str, int]:
    """Records by the values of a column, the most frequent first."""
    return dict(db.execute(_BY.format(column)).fetchall())


def page(counts: Mapping[str, Any], languages: Mapping[str, int], licences: Mapping[str, int], held_out: int) -> str:
    """The page, in Markdown."""
    kept, dropped = counts["splits"], counts["dropped"]
    size = sum(row["bytes"] for row in kept)
    head = ("split", "source", "records", "characters", "tokens", "GB", "with a text after", "with tests")
    rows = [
        (row["split"], row["source"], *_numbers(row), f"{row['bytes'] / GB:.6f}", row["with_after"], row["with_tests"])
        for row in kept
    ]
    total = {name: sum(row[name] for row in kept) for name in _NAMES[2:]}
    rows.append(("all", "", *_numbers(total), f"{size / GB:.6f}", total["with_after"], total["with_tests"]))
    lines = [
        "# Normalized edits",
        "",
        f"{counts['lines']} lines read, {counts['records']} records kept. Every record has an id, a source, a language, an "
        "instruction and a text before.",
        f"{counts['groups']} groups of alike rows, the largest of {counts['largest_group']}. "
        + (f"{held_out} held-out tasks share no content with them." if held_out else "No set was held out."),
        "",
        *table(head, rows),
        "",
        *table(("dropped because of", "lines"), dropped.items()),
        "",
        *table(("language", "records"), languages.items()),
        "",
        *table(("licence", "records"), ((name or "not named", count) for name, count in licences.items())),
    ]
    return "\n".join(lines)


def _numbers(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["records"], row["characters"], row["tokens"] or "not counted"


def table(head: Sequence[str], rows: Any) -> list[str]:
    """Lines of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def check_output(output: Path, roots: Iterable[Path], own: Iterable[str]) -> None:
    """Raises InputError where the output is below a set, whose next reading would read it, or has files and none of its `own`."""
    for root in roots:
        if root.resolve() in (output.resolve(), *output.resolve().parents):
            what, allowed = "is inside a set that is read", "a folder elsewhere"
            raise InputError(InputProblem("prepare.output", what, f"{output} in {root}", allowed))
    found = {entry.name for entry in output.iterdir()} if output.is_dir() else set()
    if found and found.isdisjoint(own):
        what = "holds other files, which would be taken for rows"
        raise InputError(InputProblem("prepare.output", what, ", ".join(sorted(found)[:5]), "a new or empty folder"))


def write_splits(index: Index, shards: Sequence[Shard], output: Path) -> dict[str, str]:
    """Write all files of rows; returns the SHA-256 of each by its path below the output."""
    folder = index.folder / "splits"
    sets = {shard.number: shard.reader.name for shard in shards}
    placed = index.db.execute("SELECT split, reason, shard FROM placed JOIN rows USING (n) ORDER BY n")
    names: dict[str, IO[bytes]] = {}
    with ExitStack() as stack:
        for (split, reason, shard), line in zip(placed, index.spooled(), strict=True):
            if reason:
                continue
            name = f"{split}/{sets[shard]}.jsonl"
            if name not in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                names[name] = stack.enter_context(open(folder / name, "wb"))
            names[name].write(line)
    for name in names:
        (output / name).parent.mkdir(exist_ok=True)
        os.replace(folder / name, output / name)
    return {name: checksum(output / name) for name in sorted(names)}


def write_dropped(index: Index, shards: Sequence[Shard], output: Path) -> None:
    """Write `dropped.csv`: set, file, line, reason, detail."""
    places = {shard.number: (shard.reader.name, shard.name) for shard in shards}
    temporary = index.folder / DROPPED
    with open(temporary, "w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("set", "file", "line", "reason", "detail"))
        for shard, number, reason, detail in index.db.execute(_EVERY):
            rows.writerow((*places[shard], number, reason, detail))
    os.replace(temporary, output / DROPPED)
