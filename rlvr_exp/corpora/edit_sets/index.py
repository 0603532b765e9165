"""What is known of every row while a set is read, in one SQLite file, and the rows themselves in a spool beside it.

Both are of the folder `.ingest` in the output, which is removed at the end. A commit writes the rows, the lines dropped and
the places up to which files are read as one, so that after kill -9 at any time the reading is continued from the last
commit: what the spool holds past it is cut off. On disk a row takes about 1.3 KB besides its text; in memory nothing.
"""

import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rlvr_exp.core.errors import InputError, InputProblem

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
        counted = (row.answered, row.tested, row.characters, row.tokens, len(data))
        values = (
            n,
            row.shard,
            row.number,
            row.id,
            row.key,
            row.demanded,
            row.source,
            row.language,
            row.licence,
            *counted,
        )
        self.db.execute(f"INSERT INTO rows VALUES ({', '.join('?' * 15)})", (*values, row.signature))
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
