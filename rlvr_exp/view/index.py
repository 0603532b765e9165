"""The index of a tree of runs: an SQLite file in the user's cache, brought up to date by `Index.refresh`.

The index has the facts of each run, the rows of its metrics, and of each sample what the page filters and sorts by, with
the words of its texts for the search. The texts themselves stay in the files of the runs. A file of samples is read
again only if its size or its time has changed; of metrics.jsonl only new lines are read.
"""

import gzip
import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import cache_home
from rlvr_exp.records.rollout_files import evaluation_path, rollout_steps
from rlvr_exp.report.data import WHENS
from rlvr_exp.view.facts import find_runs, inside, read_facts, signature

VERSION = 1
"""Of the tables. An index of another version is built again."""
ANSWERS, BEFORE, AFTER = -2, -1, 1 << 40
"""Places of the answers of +stage=infer and of the samples of evaluations; the place of a training sample is its step."""
ROWS = 1 << 24
"""Most rows of a file. The id of a sample is the id of its file times this, plus its row."""
MOST_LINE = 32 << 20
"""Most bytes of a row."""
MOST_WORDS = 4000
"""Characters at each end of a text that are searched."""
COMMIT_SECONDS = 2.0
KINDS = ("task", "family", "role", "outcome", "bucket", "mode")
"""Columns of samples whose values are names."""
LISTED = KINDS[1:]
"""Those with few values, which are counted."""
NUMBERS = ("sample", "tokens", "reward", "advantage")
"""Columns of samples whose values are numbers."""
BATCH = 500
"""Samples that are written at once."""

TABLES = f"""
CREATE TABLE runs(id INTEGER PRIMARY KEY, path TEXT UNIQUE, signature TEXT, facts TEXT, metrics TEXT DEFAULT '[0,0,0]');
CREATE TABLE metrics(run INTEGER, step INTEGER, row TEXT, PRIMARY KEY(run, step)) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER, place INTEGER, path TEXT UNIQUE, state TEXT,
  rows INTEGER, problem TEXT);
CREATE INDEX files_of_run ON files(run, place);
CREATE TABLE names(id INTEGER PRIMARY KEY, kind TEXT, text TEXT, UNIQUE(kind, text));
CREATE TABLE counts(file INTEGER, name INTEGER, rows INTEGER, PRIMARY KEY(file, name)) WITHOUT ROWID;
CREATE TABLE samples(id INTEGER PRIMARY KEY, first INTEGER, {", ".join(f"{kind} INTEGER" for kind in KINDS)},
  {", ".join(NUMBERS)});
CREATE VIRTUAL TABLE words USING fts5(completion, prompt, log, content='', detail=column,
  tokenize="unicode61 tokenchars '_'");
PRAGMA user_version = {VERSION};
"""

Report = Callable[[int, int], None]


class DamagedFile(Exception):
    """A file of samples cannot be read to its end."""


class Index:
    """The index of the runs at or below a folder.

    Args:
        root: the folder.
        path: the file of the index. None: by the path of the folder, in the user's cache.
    """

    def __init__(self, root: Path, path: Path | None = None):
        self.root = root.resolve()
        name = hashlib.blake2b(str(self.root).encode(), digest_size=8).hexdigest()
        self.path = path or cache_home() / "view" / f"{name}.sqlite"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._names: dict[tuple[str, str], int] = {}
        self._seen: dict[Path, tuple[int, list[int]]] = {}
        try:
            self._create()
        except sqlite3.DatabaseError:  # Damaged, for example by a full disk.
            self._remove()
            self._create()

    def _create(self) -> None:
        with self.reading() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            self._remove()
        if version != VERSION:
            with self._writing() as db:
                db.executescript(TABLES)

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that only reads."""
        with closing(sqlite3.connect(self.path, timeout=30)) as db:
            db.execute("PRAGMA query_only = ON")
            yield db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA cache_size = -32000")
            yield db

    def refresh(self, report: Report = lambda done, total: None) -> bool:
        """Bring the index up to date with the files, and return whether anything has changed.

        Args:
            report: called with the number of changed files of samples that have been read, and of all changed ones.
        """
        done = False
        try:
            with self._writing() as db:
                db.execute("BEGIN IMMEDIATE")
                changed, runs = self._refresh_runs(db)
                changed_files, gone = self._compare_files(db, runs)
                for number in gone:
                    self._drop_file(db, number)
                db.execute("COMMIT")
                self._read_files(db, changed_files, report)
            done = True
        finally:
            if not done:  # The database may lack what was remembered.
                self._names.clear()
                self._seen.clear()
        return changed or bool(gone or changed_files)

    def _refresh_runs(self, db: sqlite3.Connection) -> tuple[bool, dict[Path, int]]:
        """Whether a run has changed, and the id of each run."""
        known = {row[0]: row[1:] for row in db.execute("SELECT path, id, signature, facts, metrics FROM runs")}
        changed = False
        runs: dict[Path, int] = {}
        for directory in find_runs(self.root):
            path = directory.relative_to(self.root).as_posix()
            number, signed, facts, metrics = known.pop(path, (None, "", None, "[0,0,0]"))
            now = signature(self.root, directory)
            if number is None:
                number = db.execute("INSERT INTO runs(path) VALUES (?)", [path]).lastrowid
            if now != signed:
                changed = True
                metrics = self._read_metrics(db, number, directory, metrics)
                last = db.execute("SELECT max(step) FROM metrics WHERE run = ?", [number]).fetchone()[0]
                found = read_facts(self.root, directory, last or 0)
                facts = None if found is None else json.dumps(found)
                db.execute(
                    "UPDATE runs SET signature = ?, facts = ?, metrics = ? WHERE id = ?", [now, facts, metrics, number]
                )
            if facts is not None:
                runs[directory] = number
        for number, *_ in known.values():
            changed = True
            db.execute("DELETE FROM metrics WHERE run = ?", [number])
            db.execute("DELETE FROM runs WHERE id = ?", [number])
        return changed, runs

    def _read_metrics(self, db: sqlite3.Connection, run: int, directory: Path, known: str) -> str:
        """Read the new lines of metrics.jsonl, and its last known line again, which may have grown.

        Returns:
            The file's inode, its size, and where its last line begins, as JSON.
        """
        inode, size, begin = json.loads(known)
        path = inside(self.root, directory / "metrics.jsonl")
        state = path.stat() if path else None
        if state is None or state.st_ino != inode or state.st_size < size:  # A new file, or a resumed run.
            db.execute("DELETE FROM metrics WHERE run = ?", [run])
            begin = 0
        if path is None or state is None:
            return "[0,0,0]"
        with open(path, "rb") as lines:
            lines.seek(begin)
            for line in lines:
                row = _row(line) if line.endswith(b"\n") else None
                if row is None or not isinstance(row.get("step"), int):
                    break  # The run is writing it.
                begin = lines.tell() - len(line)
                db.execute("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?)", [run, row["step"], line.decode()])
        return json.dumps([state.st_ino, state.st_size, begin])

    def _compare_files(
        self, db: sqlite3.Connection, runs: Mapping[Path, int]
    ) -> tuple[list[tuple[int, int, Path, str]], list[int]]:
        """Files of samples that are new or changed as (run, place, path, state), and ids of files that are gone or changed.

        Runs replace their files, which changes the time of the folder. Folders that this index has seen in their state
        are skipped.
        """
        known: dict[int, dict[str, tuple[int, str]]] = {}
        for run, number, name, state in db.execute("SELECT run, id, path, state FROM files"):
            known.setdefault(run, {})[name] = (number, state)
        changed: list[tuple[int, int, Path, str]] = []
        gone: list[int] = []
        for directory, run in runs.items():
            folders = [_time(directory / name) for name in ("rollouts", "evaluation", "answers.jsonl")]
            of_run = known.pop(run, {})
            if self._seen.get(directory) == (run, folders):
                continue
            for place, path in _sample_files(directory):
                if (real := inside(self.root, path)) is None:
                    continue
                stat = real.stat()
                state = json.dumps([stat.st_size, stat.st_mtime_ns, stat.st_ino])
                number, seen = of_run.pop(path.relative_to(self.root).as_posix(), (None, ""))
                if state != seen:
                    changed.append((run, place, path, state))
                    gone += [] if number is None else [number]
            gone += [number for number, _ in of_run.values()]
            self._seen[directory] = (run, folders)
        return changed, gone + [number for files in known.values() for number, _ in files.values()]

    def _drop_file(self, db: sqlite3.Connection, number: int) -> None:
        # Its words stay: without the texts they cannot be removed, and no later sample has these ids.
        db.execute("DELETE FROM samples WHERE id >= ? AND id < ?", [number * ROWS, (number + 1) * ROWS])
        db.execute("DELETE FROM counts WHERE file = ?", [number])
        db.execute("DELETE FROM files WHERE id = ?", [number])

    def _read_files(self, db: sqlite3.Connection, files: list[tuple[int, int, Path, str]], report: Report) -> None:
        begun = time.monotonic()
        db.execute("BEGIN IMMEDIATE")
        for done, (run, place, path, state) in enumerate(files):
            report(done, len(files))
            self._read_file(db, run, place, path, state)
            if time.monotonic() - begun > COMMIT_SECONDS:
                db.execute("COMMIT")
                begun = time.monotonic()
                db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")
        if files:
            report(len(files), len(files))

    def _read_file(self, db: sqlite3.Connection, run: int, place: int, path: Path, state: str) -> None:
        relative = path.relative_to(self.root).as_posix()
        added = "INSERT OR IGNORE INTO files(run, place, path, state) VALUES (?, ?, ?, ?)"
        cursor = db.execute(added, [run, place, relative, state])
        if not cursor.rowcount:  # Another process keeps this index, too, and was faster.
            return
        number, rows, problem = int(cursor.lastrowid or 0), 0, ""
        counts: Counter[int] = Counter()
        first: dict[Any, int] = {}
        samples: list[tuple[Any, ...]] = []
        words: list[tuple[Any, ...]] = []

        def write() -> None:
            if samples:
                db.executemany(f"INSERT INTO samples VALUES ({', '.join('?' * len(samples[0]))})", samples)
                db.executemany("INSERT INTO words(rowid, completion, prompt, log) VALUES (?, ?, ?, ?)", words)
            samples.clear()
            words.clear()

        try:
            for rows, row in enumerate(read_rows(path), 1):
                at = number * ROWS + rows - 1
                names = [self._name(db, kind, text) for kind, text in zip(KINDS, _kinds(row), strict=True)]
                counts.update(name for name in names[1:] if name is not None)
                head = first.setdefault(row.get("group", row.get("task")), at)
                samples.append((at, head, *names, *(_number(row.get(name)) for name in NUMBERS)))
                prompt = row.get("prompt") if head == at else ""
                words.append((at, *(_ends(text) for text in (row.get("completion"), prompt, row.get("log")))))
                if len(samples) == BATCH:
                    write()
        except DamagedFile as fault:
            problem = str(fault)
        write()
        db.executemany("INSERT INTO counts VALUES (?, ?, ?)", [(number, *one) for one in counts.items()])
        db.execute("UPDATE files SET rows = ?, problem = ? WHERE id = ?", [rows, problem, number])

    def _name(self, db: sqlite3.Connection, kind: str, text: str | None) -> int | None:
        if text is None:
            return None
        if (kind, text) not in self._names:
            db.execute("INSERT OR IGNORE INTO names(kind, text) VALUES (?, ?)", [kind, text])
            found = db.execute("SELECT id FROM names WHERE kind = ? AND text = ?", [kind, text]).fetchone()
            self._names[kind, text] = found[0]
        return self._names[kind, text]


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of samples, one after the other.

    Raises:
        DamagedFile: a row cannot be read, or is too long.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as lines:
            for number in range(ROWS):
                line = lines.readline(MOST_LINE)
                if not line or (path.suffix != ".gz" and len(line) < MOST_LINE and not line.endswith(b"\n")):
                    return  # The run is writing its last answer.
                if (row := _row(line)) is None:
                    raise DamagedFile(f"row {number + 1} is no JSON object of at most {MOST_LINE >> 20} MB")
                yield row if "id" not in row else {**row, "task": row["id"], "completion": row.get("text")}
    except (OSError, EOFError, zlib.error) as fault:
        raise DamagedFile(str(fault)) from fault


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _sample_files(directory: Path) -> Iterator[tuple[int, Path]]:
    places = dict(zip(WHENS, (BEFORE, AFTER), strict=True))
    yield ANSWERS, directory / "answers.jsonl"
    yield from ((place, evaluation_path(directory, when)) for when, place in places.items())
    yield from rollout_steps(directory).items()


def _kinds(row: Mapping[str, Any]) -> list[str | None]:
    """The values of KINDS. A role is shown with its stage of reasoning."""
    about = row.get("about") or {}
    named = (about.get("role"), about.get("stage"), "critique" if about.get("critique") else None)
    role = " ".join(str(one) for one in named if one) or None
    found = (row.get("task"), row.get("family"), role, row.get("outcome"), row.get("bucket"), row.get("mode"))
    return [None if value is None else str(value) for value in found]


def _time(path: Path) -> int:
    """The time of a change in a folder, or of a file; 0 if it is missing."""
    return path.stat().st_mtime_ns if path.exists() else 0


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _ends(text: Any) -> str:
    """The searched part of a text."""
    text = text if isinstance(text, str) else ""
    return text if len(text) <= 2 * MOST_WORDS else f"{text[:MOST_WORDS]} {text[-MOST_WORDS:]}"
