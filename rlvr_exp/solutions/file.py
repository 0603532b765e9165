"""The file of a store: its schema, how it is made and opened. A file under its final name is a complete store.

SQLite with a write-ahead log: who reads sees the last commit and never waits for who writes, and a process that dies
leaves what it had committed. Not for folders that several machines share: the log's index is memory of one machine.
"""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.solutions.keep import Keeping

APPLICATION = 0x524C5653
"""Marks an SQLite file as a store."""
VERSION = 1
BUSY_S = 60.0
"""Seconds that a writer waits for another's transaction."""
COLUMNS = (
    *("key", "task", "family", "difficulty", "program", "outcome", "bucket", "rule", "passed", "total", "seconds"),
    *("outputs", "behaviour", "syntax", "size", "operator", "parent", "run", "step", "policy"),
)
SCHEMA = """
CREATE TABLE keeping (json TEXT NOT NULL);
CREATE TABLE solutions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL, family TEXT NOT NULL, difficulty REAL NOT NULL, program TEXT NOT NULL,
    outcome TEXT NOT NULL, bucket TEXT, rule TEXT,
    passed INTEGER NOT NULL, total INTEGER NOT NULL, seconds REAL NOT NULL,
    outputs TEXT NOT NULL, behaviour TEXT NOT NULL, syntax TEXT NOT NULL, size INTEGER NOT NULL,
    operator TEXT NOT NULL, parent TEXT NOT NULL, run TEXT NOT NULL, step INTEGER NOT NULL, policy TEXT NOT NULL
);
CREATE INDEX by_task ON solutions (task);
CREATE INDEX by_family ON solutions (family);
"""


def create(path: Path, keeping: Keeping, option: str) -> None:
    """Make an empty store; nothing where another process is first. Raises InputError where the folder takes none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp") as folder:
            new = Path(folder) / "new"
            with closing(sqlite3.connect(new, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
                connection.execute("INSERT INTO keeping VALUES (?)", [json.dumps(asdict(keeping))])
            os.link(new, path)  # Unlike a rename it never replaces the store of whoever was first.
    except FileExistsError:
        return
    except (OSError, sqlite3.Error) as fault:
        what = f"cannot be made: {getattr(fault, 'strerror', None) or fault}"
        raise InputError(InputProblem(option, what, str(path), "", "", "a folder on a local disk")) from fault


def connect(path: Path, writes: bool, option: str) -> sqlite3.Connection:
    """A connection to a store. Raises InputError where there is none, or none that can be used."""
    if not path.is_file():
        what = "is no file" if path.exists() else "not there"
        raise InputError(InputProblem(option, what, str(path), "a store of solutions", "", "correct the path"))
    if writes and not os.access(path, os.W_OK):
        raise InputError(InputProblem(option, "cannot be written", str(path), "", "", "a file of your own"))
    where = f"file:{quote(str(path.absolute()))}?mode={'rw' if writes else 'ro'}"
    connection = None
    try:
        connection = sqlite3.connect(where, uri=True, timeout=BUSY_S, isolation_level=None)
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        _check(path, option, *marks)
        connection.execute("PRAGMA synchronous = FULL")  # A commit survives a power cut, too.
        return connection
    except BaseException as fault:
        if connection is not None:
            connection.close()
        if isinstance(fault, sqlite3.Error):
            what = f"is no store of solutions: {fault}"
            raise InputError(InputProblem(option, what, str(path), "", "", "another file")) from fault
        raise


def keeping_of(connection: sqlite3.Connection) -> Keeping:
    """What the store keeps."""
    stored = json.loads(connection.execute("SELECT json FROM keeping").fetchone()[0])
    return Keeping(stored["per_task"], tuple(stored["quality"]))


def _check(path: Path, option: str, application: int, version: int) -> None:
    if application != APPLICATION:
        raise InputError(InputProblem(option, "is no store of solutions", str(path), "", "", "another file"))
    if version != VERSION:
        what, remedy = "is of another version of rlvr_exp", "the version that made it, or another file"
        raise InputError(InputProblem(option, what, f"version {version} in {path}", str(VERSION), "", remedy))
