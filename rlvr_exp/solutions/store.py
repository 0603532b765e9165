"""The store of solutions: one SQLite file that many runs and processes share.

Each call of `add_many` is one transaction: all of it is stored, or nothing. At any moment no two solutions of a task have
the same behaviour and the same syntax tree, and a task has at most `keeping.per_task`. A connection belongs to the thread
that opened it, and is not carried through a fork.

The file has a write-ahead log: a reader sees the last commit and never waits for a writer, and a process that dies leaves
its committed rows. Not for folders that several machines share: the log's index is memory of one machine. A file under
its final name is a complete store.

If a task has too many solutions, half of those that stay are the best and half the most different from these. SOAR
measured 25 best with 25 others above the 50 best alone (36.5% against 34.3% of train tasks). The difference of two
programs is the number of inputs on which their outputs differ, which needs no embedding.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from rlvr_exp.config.solutions import QUALITY, Solutions
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.solutions.record import JUDGED, OWN, Solution
from rlvr_exp.verifiers.base import Verdict

APPLICATION = 0x524C5653
"""Marks an SQLite file as a store."""
VERSION = 1
BUSY_S = 60.0
"""Seconds that a writer waits for another's transaction."""
BATCH = 1000
"""Solutions of one transaction of a large insertion: the disk is waited for once a batch."""
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
_INSERT = (
    f"INSERT INTO solutions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT DO NOTHING"
)

METRICS: dict[str, tuple[str, bool]] = {
    "correct": ("outcome = 'passed'", True),
    "pairs_right": ("CASE WHEN total THEN passed * 1.0 / total ELSE 0.0 END", True),
    "size": ("size", False),
    "cpu_s": ("seconds", False),
    "step": ("step", True),
    "difficulty": ("difficulty", True),
}
"""Metrics of quality: the SQL expression over the columns, and whether the largest value is the best."""
DEFAULT = ("correct", "pairs_right", "size")


def order_by(quality: Sequence[str]) -> str:
    """The ORDER BY clause of a ranking, best first: lexicographic, ties in the order of insertion. A `-` before a metric's
    name puts its worst first. Raises ValueError for an unknown metric."""
    if unknown := [name for name in quality if name not in QUALITY]:
        raise ValueError(f"quality: got {', '.join(unknown)}, allowed {', '.join(QUALITY)}")
    terms = []
    for name in quality:
        sql, most_first = METRICS[name.removeprefix("-")]
        terms.append(f"({sql}) {'DESC' if most_first != name.startswith('-') else 'ASC'}")
    return ", ".join([*terms, "number"])


@dataclass(frozen=True)
class Keeping:
    """The bound of a store, which its file fixes for all writers."""

    per_task: int = 50
    """Most solutions of a task."""
    quality: tuple[str, ...] = DEFAULT
    """The ranking that chooses the best."""

    def __post_init__(self) -> None:
        order_by(self.quality)
        if self.per_task < 1:
            raise ValueError(f"Keeping.per_task: got {self.per_task}, allowed at least 1")


Outputs = Sequence[str]


def kept(ranked: Sequence[Outputs], most: int) -> list[int]:
    """Places of the solutions that stay.

    Args:
        ranked: the outputs of each solution of a task, the best first.
        most: how many may stay.
    """
    if len(ranked) <= most:
        return list(range(len(ranked)))
    chosen = list(range(most - most // 2))
    nearest = {
        place: min(distance(ranked[place], ranked[one]) for one in chosen) for place in range(len(chosen), len(ranked))
    }
    while len(chosen) < most:
        farthest = max(nearest, key=lambda place: nearest[place])  # the first, so the best, among equals
        del nearest[farthest]
        chosen.append(farthest)
        for place, near in nearest.items():
            if near:
                nearest[place] = min(near, distance(ranked[place], ranked[farthest]))
    return chosen


def distance(one: Outputs, other: Outputs) -> int:
    """Number of inputs on which two solutions differ."""
    return sum(map(ne, one, other)) + abs(len(one) - len(other))


class Added(NamedTuple):
    """Counts of an insertion."""

    new: int = 0
    duplicates: int = 0
    evicted: int = 0
    """Solutions, new or old, that left since their task had too many."""


@dataclass(frozen=True)
class Query:
    """Filters and an order. Empty fields filter nothing."""

    task: str = ""
    family: str = ""
    operator: str = ""
    correct: bool | None = None
    difficulty: tuple[float, float] | None = None
    """At least, at most."""
    quality: Sequence[str] = ()
    """The ranking, best first; empty: in the order of insertion."""
    limit: int = 0
    """The first N; 0: all."""

    def where(self) -> tuple[str, list[Any]]:
        """The WHERE clause and its values."""
        named = [(name, getattr(self, name)) for name in ("task", "family", "operator")]
        terms: list[tuple[str, list[Any]]] = [(f"{name} = ?", [value]) for name, value in named if value]
        if self.correct is not None:
            terms.append(("(outcome = 'passed') = ?", [self.correct]))
        if self.difficulty is not None:
            terms.append(("difficulty BETWEEN ? AND ?", list(self.difficulty)))
        return " AND ".join(["1", *(term for term, _ in terms)]), [value for _, values in terms for value in values]


class SolutionStore:
    """The store at `path`, which is created if the file does not exist.

    Args:
        keeping: its bound; None: that of the file, or the defaults of `Keeping` for a new one.
        read_only: never write, never create.
        option: the option that names the file, for messages.

    Raises:
        InputError: the file is no store, of another version, has another bound, or cannot be used.
    """

    def __init__(
        self, path: Path, keeping: Keeping | None = None, read_only: bool = False, option: str = "solutions.path"
    ):
        self.path = path
        if not read_only and not path.exists():
            create(path, keeping or Keeping(), option)
        self._connection = _connect(path, not read_only, option)
        try:
            stored = json.loads(self.rows("SELECT json FROM keeping")[0][0])
            self.keeping = Keeping(stored["per_task"], tuple(stored["quality"]))
            if keeping not in (None, self.keeping):
                shown = [f"{one.per_task} a task by {', '.join(one.quality)}" for one in (keeping, self.keeping) if one]
                what, remedy = "the store was made to keep otherwise", "drop the options, or merge into a new store"
                raise InputError(InputProblem(option, what, shown[0], shown[1], "", remedy))
        except BaseException:
            self.close()
            raise

    def add(self, solution: Solution) -> bool:
        """Add one solution; False if the store has one of its behaviour and syntax tree."""
        return bool(self.add_many([solution]).new)

    def add_many(self, solutions: Iterable[Solution]) -> Added:
        """Add in one transaction: once this returns, a kill loses nothing of it.

        Raises:
            GuardStop: the disk is full or another process writes too long. Nothing was added.
        """
        rows = [_columns(one) for one in solutions]  # outside of the transaction: parsing takes longer than writing
        with self._writing() as connection:
            before = connection.total_changes
            connection.executemany(_INSERT, rows)
            new = connection.total_changes - before
            evicted = sum(self._evict(task) for task in dict.fromkeys(row[1] for row in rows))
        return Added(new, len(rows) - new, evicted)

    def add_all(self, solutions: Iterable[Solution]) -> Iterator[Added]:
        """Add any number, one transaction a batch; yields the sum so far after each."""
        stream, total = iter(solutions), Added()
        while batch := list(islice(stream, BATCH)):
            total = Added(*map(sum, zip(total, self.add_many(batch), strict=True)))
            yield total

    def find(self, query: Query = Query()) -> list[Solution]:
        """The solutions of a query, as they are at one moment."""
        where, values = query.where()
        limit = f" LIMIT {int(query.limit)}" if query.limit else ""
        words = f"SELECT {', '.join(COLUMNS)} FROM solutions WHERE {where} ORDER BY {order_by(query.quality)}{limit}"
        with self._reading():
            return [_solution(row) for row in self._connection.execute(words, values)]

    def get(self, key: str) -> Solution | None:
        """The solution of a key."""
        rows = self.rows(f"SELECT {', '.join(COLUMNS)} FROM solutions WHERE key = ?", [key])
        return _solution(rows[0]) if rows else None

    def count(self, query: Query = Query()) -> int:
        """The number of solutions of a query, whatever its limit."""
        where, values = query.where()
        return int(self.rows(f"SELECT count(*) FROM solutions WHERE {where}", values)[0][0])

    def rows(self, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT, for tables and checks."""
        with self._reading():
            return self._connection.execute(words, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one moment, whatever other processes write."""
        with self._reading():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _evict(self, task: str) -> int:
        words = f"SELECT number, outputs FROM solutions WHERE task = ? ORDER BY {order_by(self.keeping.quality)}"
        ranked = self._connection.execute(words, [task]).fetchall()
        if len(ranked) <= self.keeping.per_task:
            return 0
        places = set(kept([outputs.split() for _, outputs in ranked], self.keeping.per_task))
        leaving = [(number,) for place, (number, _) in enumerate(ranked) if place not in places]
        self._connection.executemany("DELETE FROM solutions WHERE number = ?", leaving)
        return len(leaving)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as fault:
            remedy = f"make room, or wait: a writer waits {BUSY_S:.0f} s for another. Earlier solutions are safe"
            raise GuardStop(f"{self.path} cannot be written: {fault}; {remedy}") from fault

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as fault:
            remedy = "+stage=solutions solutions.action=check names the damage"
            problem = InputProblem(str(self.path), f"cannot be read: {fault}", "", "", "", remedy)
            raise InputError(problem) from fault


def create(path: Path, keeping: Keeping, option: str) -> None:
    """Create an empty store, unless another process did so first. Raises InputError if the folder does not allow it."""
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
            os.link(new, path)  # Unlike a rename it never replaces the store of the process that was first.
    except FileExistsError:
        return
    except (OSError, sqlite3.Error) as fault:
        what = f"cannot be made: {getattr(fault, 'strerror', None) or fault}"
        raise InputError(InputProblem(option, what, str(path), "", "", "a folder on a local disk")) from fault


def _connect(path: Path, writes: bool, option: str) -> sqlite3.Connection:
    if not path.is_file():
        what = "is no file" if path.exists() else "not there"
        raise InputError(InputProblem(option, what, str(path), "a store of solutions", "", "correct the path"))
    if writes and not os.access(path, os.W_OK):
        raise InputError(InputProblem(option, "cannot be written", str(path), "", "", "a file of your own"))
    address = f"file:{quote(str(path.absolute()))}?mode={'rw' if writes else 'ro'}"
    connection = None
    try:
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None)
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise InputError(InputProblem(option, "is no store of solutions", str(path), "", "", "another file"))
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            what, remedy = "is of another version of rlvr_exp", "the version that made it, or another file"
            raise InputError(InputProblem(option, what, f"version {version} in {path}", str(VERSION), "", remedy))
        connection.execute("PRAGMA synchronous = FULL")  # A commit survives a power cut, too.
        return connection
    except BaseException as fault:
        if connection is not None:
            connection.close()
        if isinstance(fault, sqlite3.Error):
            what = f"is no store of solutions: {fault}"
            raise InputError(InputProblem(option, what, str(path), "", "", "another file")) from fault
        raise


def _columns(solution: Solution) -> tuple[Any, ...]:
    derived = {"syntax": solution.syntax.hash, "size": solution.syntax.size, "outputs": " ".join(solution.outputs)}
    own = {"key": solution.key, "behaviour": solution.behaviour}
    values = {**vars(solution.verdict), **vars(solution), **own, **derived}
    return tuple(values[name] for name in COLUMNS)


def _solution(row: Sequence[Any]) -> Solution:
    values = dict(zip(COLUMNS, row, strict=True))
    own = {**{name: values[name] for name in OWN}, "outputs": tuple(values["outputs"].split())}
    return Solution(**own, verdict=Verdict(**{name: values[name] for name in JUDGED}))


def faults(store: SolutionStore) -> list[str]:
    """A line for each fault: damaged pages, rows that do not follow from their program and outputs, exceeded bounds. Empty
    for a sound store."""
    try:
        with store.snapshot():
            pages = [line for (line,) in store.rows("PRAGMA integrity_check(20)") if line != "ok"]
            return [f"file: {line}" for line in pages] or [*_faulty(store)]
    except (InputError, ValueError, TypeError) as fault:
        return [f"a row is no solution: {fault}"]


def _faulty(store: SolutionStore) -> Iterator[str]:
    """One task at a time, so that the memory is bounded."""
    names, most = ("key", "behaviour", "syntax", "size"), store.keeping.per_task
    words = f"SELECT {', '.join(names)} FROM solutions WHERE task = ? ORDER BY number"
    for (task,) in store.rows("SELECT DISTINCT task FROM solutions ORDER BY task"):
        for one, row in zip(store.find(Query(task=task)), store.rows(words, [task]), strict=True):
            derived = (one.key, one.behaviour, one.syntax.hash, one.syntax.size)
            wrong = [name for name, ours, theirs in zip(names, derived, row, strict=True) if ours != theirs]
            if wrong:
                yield f"task {task}: {' and '.join(wrong)} of {row[0]} are not those of its program and outputs"
    for task, count in store.rows("SELECT task, count(*) FROM solutions GROUP BY task HAVING count(*) > ?", [most]):
        yield f"task {task}: {count} solutions, at most {most} are kept"
    twice = "SELECT task, count(*) FROM solutions GROUP BY task, behaviour, syntax HAVING count(*) > 1"
    for task, count in store.rows(twice):
        yield f"task {task}: {count} solutions of one behaviour and one syntax tree"


def query_of(options: Solutions, limit: int = 0) -> Query:
    """The filters and the ranking of a stage's options. `limit` is the default of theirs."""
    return Query(
        correct={"yes": True, "no": False}.get(options.correct),
        quality=options.quality or DEFAULT,
        limit=options.limit or limit,
    )


def keeping_of(options: Solutions) -> Keeping | None:
    """The bound in a stage's options; None if they do not set one."""
    if not (options.per_task or options.quality):
        return None
    given = Keeping()
    return Keeping(options.per_task or given.per_task, tuple(options.quality) or given.quality)


def as_text(store: SolutionStore, query: Query) -> str:
    """Counts by operator, then the solutions of the query."""
    ((tasks, solved),) = store.rows(
        "SELECT count(DISTINCT task), count(DISTINCT CASE WHEN outcome = 'passed' THEN task END) FROM solutions"
    )
    keeping = store.keeping
    bound = f"at most {keeping.per_task} a task by {', '.join(keeping.quality) or 'the order of insertion'}"
    head = f"{store.path}: {store.count()} solutions of {tasks} tasks, {solved} tasks solved; {bound}"
    by_operator = store.rows(
        "SELECT operator, count(*), sum(outcome = 'passed') FROM solutions GROUP BY operator ORDER BY operator"
    )
    found = store.find(query)
    rows = [
        (
            *(one.key[:12], one.task, one.family, one.operator, one.verdict.reason),
            *(f"{one.verdict.passed}/{one.verdict.total}", one.syntax.size, f"{one.verdict.seconds:.3f}", one.step),
        )
        for one in found
    ]
    columns = ("key", "task", "family", "operator", "verdict", "pairs right", "size", "CPU s", "step")
    shown = f"{len(found)} of {store.count(query)} solutions, the best first"
    return "\n\n".join([head, _table(("operator", "solutions", "correct"), by_operator), shown, _table(columns, rows)])


def _table(head: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
