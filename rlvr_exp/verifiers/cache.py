"""Verdicts by content: a cache in memory in front of one file on disk that all runs of a user share.

Losing any of it costs time, never correctness: every verdict in it can be recomputed. The caller decides whether a verdict may be cached.

The file is an SQLite database, safe under kill -9 at any time (write-ahead log if the file system has shared memory,
else a rollback journal) and bounded: least recently used verdicts are evicted first. One thread writes in batches, and a
kill may lose the last second's; a reader never waits, and a busy file is a miss. A damaged or foreign file is renamed
and a new file created; a disk that cannot be read or written costs a warning and no verdict.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlvr_exp.config import verifier as node
from rlvr_exp.core.files import cache_home
from rlvr_exp.verifiers.base import Verdict

NAME = "verdicts-2.sqlite"
"""The number is the schema's version: programs with another schema use another file."""
_APPLICATION = 0x524C5652
_EVERY_S, _BATCH, _MOST_WAITING = 1.0, 500, 20_000
_STALE_S = 3600
"""A verdict's last use is updated once an hour at most: reading stays cheap."""
_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse.", "glusterfs", "panfs")
"""File systems, by the beginning of their name, that several machines may share."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON verdicts (used);
"""
_FIELDS = tuple(field.name for field in dataclasses.fields(Verdict))


class Store:
    """The file in `folder`, created when missing. Thread-safe; never raises for faults of a disk."""

    def __init__(self, folder: Path, max_mb: int):
        self._path, self._max_bytes = folder / NAME, max_mb << 20
        self._reading, self._wake = threading.Lock(), threading.Condition()
        self._waiting: dict[bytes, bytes | None] = {}
        """Pending writes by key; None: only the last use is updated."""
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._closed = self._usable = False
        self._failures = 0
        with self._guarded():
            self._open()
        self._thread = threading.Thread(target=self._write_on, name="verdict-cache", daemon=True)
        self._thread.start()

    def get(self, key: bytes) -> Verdict | None:
        with self._wake:
            waiting = self._waiting.get(key)
        if waiting is not None:
            return unpacked(waiting)
        row: tuple[bytes, int] | None = None
        with self._reading, self._guarded():
            reader = self._reader  # The writer's thread may drop it at any time.
            if reader is not None:
                row = reader.execute("SELECT verdict, used FROM verdicts WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if time.time() - row[1] > _STALE_S:
            with self._wake:
                self._waiting.setdefault(key, None)
        return unpacked(row[0])

    def put(self, key: bytes, verdict: Verdict) -> None:
        data = packed(verdict)
        with self._wake:
            if not self._usable or self._closed:
                return
            self._waiting[key] = data
            if len(self._waiting) > _MOST_WAITING:  # The disk is slower: the oldest verdict will be recomputed.
                del self._waiting[next(iter(self._waiting))]
            if len(self._waiting) >= _BATCH:
                self._wake.notify()

    def close(self) -> None:
        """Write pending verdicts, and close the file."""
        with self._wake:
            if self._closed:
                return
            self._closed = True
            self._wake.notify()
        self._thread.join()
        with self._reading:
            self._let_go()

    def _write_on(self) -> None:
        """The writer's thread."""
        while True:
            with self._wake:
                if not self._closed and len(self._waiting) < _BATCH:
                    self._wake.wait(_EVERY_S)
                batch, closed = dict(self._waiting), self._closed
            if batch and not self._write_batch(batch) and not closed:
                continue
            with self._wake:
                # Written verdicts are removed; verdicts stored meanwhile stay for the next batch.
                for key, data in batch.items():
                    if self._waiting.get(key, b"") is data:
                        del self._waiting[key]
            if closed:
                return

    def _write_batch(self, batch: dict[bytes, bytes | None]) -> bool:
        """False if the file is busy: the batch stays pending. A file that is not used drops every batch."""
        with self._guarded():
            writer = self._writer  # A reader that meets damage may drop it at any time.
            if writer is not None:
                self._write(writer, batch)
            return True
        return not self._usable

    def _write(self, writer: sqlite3.Connection, batch: dict[bytes, bytes | None]) -> None:
        now = int(time.time())
        with writer:
            writer.execute("BEGIN IMMEDIATE")
            rows = [(key, data, now) for key, data in batch.items() if data is not None]
            writer.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", rows)
            touched = [(now, key) for key, data in batch.items() if data is None]
            writer.executemany("UPDATE verdicts SET used = ? WHERE key = ?", touched)
        self._trim(writer)

    def _trim(self, writer: sqlite3.Connection) -> None:
        """Evict a twentieth of the verdicts at a time, least recently used first, until the rest fits."""
        while _bytes_used(writer) > self._max_bytes:
            with writer:
                writer.execute("BEGIN IMMEDIATE")
                (count,) = writer.execute("SELECT count(*) FROM verdicts").fetchone()
                if count == 0:
                    return
                oldest = "SELECT key FROM verdicts ORDER BY used LIMIT ?"
                writer.execute(f"DELETE FROM verdicts WHERE key IN ({oldest})", (count // 20 + 1,))
            writer.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page.

    def _open(self, thorough: bool = False) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # Logs quote expected values.
        if not _sound(self._path, thorough):
            self._put_aside(thorough)
        self._writer = _connected(self._path, timeout=30.0)
        self._reader = _connected(self._path, timeout=0.0)
        self._reader.execute("PRAGMA query_only = ON")
        self._usable = True

    def _put_aside(self, thorough: bool) -> None:
        """Rename a file that is no valid cache, one process at a time: a second process finds the new file sound."""
        with open(self._path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _sound(self._path, thorough):
                return
            aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
            for suffix in ("-wal", "-shm", "-journal", ""):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self._path}{suffix}", f"{aside}{suffix}")
            _warn(
                f"{self._path} was damaged or no cache of verdicts. It was renamed to {aside.name}, and a new file is used"
            )

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Handles every disk error: a busy file is retried later, a damaged file is replaced once, and a file that
        cannot be used is not used any more."""
        try:
            yield
        except (sqlite3.Error, OSError) as fault:
            if not _is_busy(fault):
                self._recover(fault)

    def _recover(self, fault: Exception) -> None:
        self._failures += 1
        self._usable = False
        # Readers may still use the old connections; these are dropped here and closed with the last reference.
        self._reader = self._writer = None
        damaged = isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.OperationalError)
        if damaged and self._failures <= 2:
            with self._guarded():
                self._open(thorough=True)
        else:
            _warn(f"verdicts are not remembered on disk ({self._path}: {fault}); set cache.path or cache.enabled=false")

    def _let_go(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._reader = self._writer = None


def packed(verdict: Verdict) -> bytes:
    """JSON of its fields behind a checksum: a flipped bit on disk must not turn a verdict into another."""
    text = json.dumps([getattr(verdict, name) for name in _FIELDS], separators=(",", ":")).encode()
    return _checksum(text) + text


def unpacked(data: bytes) -> Verdict | None:
    """The verdict; None for bytes that are no verdict."""
    try:
        if _checksum(data[8:]) != data[:8]:
            return None
        return Verdict(**dict(zip(_FIELDS, json.loads(data[8:]), strict=True)))
    except (ValueError, TypeError):
        return None


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).digest()


def _sound(path: Path, thorough: bool) -> bool:
    """Whether the file is missing, empty or a valid cache; thorough: every page is checked.

    Raises OSError or sqlite3.OperationalError if it cannot be read.
    """
    if not path.exists() or path.stat().st_size == 0:
        return True
    from urllib.parse import quote

    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=30.0)
        ) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if application == 0 and not tables:
                return True  # Another process is creating it.
            connection.execute("SELECT key, verdict, used FROM verdicts LIMIT 1").fetchone()
            whole = not thorough or connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            return application == _APPLICATION and whole
    except sqlite3.OperationalError as fault:
        if "no such" in str(fault):
            return False
        raise
    except sqlite3.DatabaseError:
        return False


def _connected(path: Path, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # A write-ahead log needs memory that its readers share: not between machines.
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if _on_network(path) else 'WAL'}").fetchone()
    connection.execute(f"PRAGMA journal_size_limit = {16 << 20}").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.executescript(_SCHEMA)
    connection.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
    return connection


def _on_network(path: Path) -> bool:
    """Whether other machines may have the file open too."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    where, mounts = f"{path.parent.resolve()}/", [line.split(" ")[1:3] for line in lines]
    holding = [(place, kind) for place, kind in mounts if where.startswith(place.rstrip("/") + "/")]
    return bool(holding) and max(holding, key=lambda mount: len(mount[0]))[1].startswith(_NETWORK)


def _is_busy(fault: Exception) -> bool:
    return isinstance(fault, sqlite3.OperationalError) and getattr(fault, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


_MEMORY_SLOTS = 50_000
"""Verdicts kept in memory; about 1 KB each."""


def key_of(known_by: bytes, content: bytes) -> bytes:
    """`known_by`: the verifier's name, version and tools; `content`: all else that decides the verdict."""
    return hashlib.blake2b(content, key=hashlib.blake2b(known_by).digest(), digest_size=20).digest()


def default_folder() -> Path:
    """`verdicts` in the user's cache folder of rlvr_exp."""
    return cache_home() / "verdicts"


class Cache:
    """Thread-safe. In a fork of its process it uses the memory alone: a database must not cross a fork.

    Args:
        options: the `cache` node; None or `enabled=False`: the memory alone.
    """

    def __init__(self, options: node.Cache | None = None):
        self._memory: OrderedDict[bytes, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._store: Store | None = None
        if options is not None and options.enabled:
            folder = Path(options.path).expanduser() if options.path else default_folder()
            self._store = Store(folder, options.max_mb)
        _LIVING.add(self)

    def get(self, key: bytes) -> Verdict | None:
        """The verdict in memory or on disk; counted as a hit or a miss."""
        verdict, source = self.peek(key), "hits_memory"
        if verdict is None and self._store is not None:
            verdict, source = self._store.get(key), "hits_disk"
            if verdict is not None:
                self._remember(key, verdict)
        with self._lock:
            self._counts["misses" if verdict is None else source] += 1
        return verdict

    def peek(self, key: bytes) -> Verdict | None:
        """The verdict in memory; not counted, and never touches the disk."""
        with self._lock:
            verdict = self._memory.get(key)
            if verdict is not None:
                self._memory.move_to_end(key)
            return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict; it is written to disk in the background. Never raises for faults of a disk."""
        self._remember(key, verdict)
        if self._store is not None:
            self._store.put(key, verdict)

    def metrics(self) -> Mapping[str, float]:
        """hits_memory, hits_disk, misses, and hit_rate after the first request."""
        with self._lock:
            counts = {name: float(self._counts[name]) for name in ("hits_memory", "hits_disk", "misses")}
        requests = sum(counts.values())
        return counts | ({"hit_rate": 1 - counts["misses"] / requests} if requests else {})

    def leave_disk(self, reason: str) -> None:
        """Use the memory alone from now on, with a warning that gives the reason."""
        if self._store is not None:
            self.close()
            warnings.warn(f"verdicts are not remembered on disk: {reason}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        """Write pending verdicts. The memory can still be read."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _remember(self, key: bytes, verdict: Verdict) -> None:
        with self._lock:
            self._memory[key] = verdict
            self._memory.move_to_end(key)
            while len(self._memory) > _MEMORY_SLOTS:
                self._memory.popitem(last=False)

    def _forked(self) -> None:
        self._lock = threading.Lock()
        if self._store is not None:
            _LEFT_BEHIND.append(self._store)
            self._store = None


_LIVING: weakref.WeakSet[Cache] = weakref.WeakSet()
_LEFT_BEHIND: list[Store] = []
"""Stores of the parent, seen from a fork: kept open, since closing a store there would disturb the parent's file."""


def _after_fork() -> None:
    for cache in list(_LIVING):
        cache._forked()


os.register_at_fork(after_in_child=_after_fork)
