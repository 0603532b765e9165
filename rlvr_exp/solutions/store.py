"""The store of solutions: adding, finding, merging, checking. One file serves many runs and processes.

Each call of `add_many` is one transaction: all of it is there, or nothing. At any moment no two solutions of a task have
the same behaviour and the same syntax tree, and a task has at most `keeping.per_task`. A connection belongs to the thread
that opened it, and is not carried through a fork.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.solutions.file import BUSY_S, COLUMNS, connect, create, keeping_of
from rlvr_exp.solutions.keep import Keeping, kept
from rlvr_exp.solutions.ranking import order_by
from rlvr_exp.solutions.record import JUDGED, OWN, Solution
from rlvr_exp.verifiers.base import Verdict

BATCH = 1000
"""Solutions of one transaction where there are many: a disk is waited for once a batch."""
_INSERT = (
    f"INSERT INTO solutions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT DO NOTHING"
)


class Added(NamedTuple):
    """What became of solutions that were added."""

    new: int = 0
    duplicates: int = 0
    evicted: int = 0
    """Solutions, new or old, that left since their task had too many."""

    def plus(self, other: "Added") -> "Added":
        return Added(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True)
class Query:
    """Which solutions, and in what order. Empty fields filter nothing."""

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
    """The store at `path`, made where there is none.

    Args:
        keeping: what it keeps; None: as it was made, with the defaults of `Keeping` for a new one.
        read_only: never writes, never makes one.
        option: names the file in messages.

    Raises:
        InputError: the file is no store, of another version, keeps otherwise, or cannot be used.
    """

    def __init__(
        self, path: Path, keeping: Keeping | None = None, read_only: bool = False, option: str = "solutions.path"
    ):
        self.path = path
        if not read_only and not path.exists():
            create(path, keeping or Keeping(), option)
        self._connection = connect(path, not read_only, option)
        try:
            with self._reading():
                self.keeping = keeping_of(self._connection)
            if keeping not in (None, self.keeping):
                raise InputError(_other_keeping(option, self.keeping, keeping))
        except BaseException:
            self.close()
            raise

    def add(self, solution: Solution) -> bool:
        """Whether it is new: no solution of its behaviour and syntax tree was there."""
        return bool(self.add_many([solution]).new)

    def add_many(self, solutions: Iterable[Solution]) -> Added:
        """Add in one transaction: once this returns, a kill loses nothing of it. Raises GuardStop, with nothing added, where
        the disk takes no more or another process writes too long."""
        rows = [_columns(one) for one in solutions]  # outside of the transaction: parsing takes longer than writing
        with self._writing() as connection:
            before = connection.total_changes
            connection.executemany(_INSERT, rows)
            new = connection.total_changes - before
            evicted = sum(self._evict(task) for task in dict.fromkeys(row[1] for row in rows))
        return Added(new, len(rows) - new, evicted)

    def add_all(self, solutions: Iterable[Solution]) -> Iterator[Added]:
        """Add any number, a transaction a batch; gives the sum so far after each."""
        stream, total = iter(solutions), Added()
        while batch := list(islice(stream, BATCH)):
            total = total.plus(self.add_many(batch))
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
        with self._reading():
            row = self._connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM solutions WHERE key = ?", [key]
            ).fetchone()
        return row and _solution(row)

    def count(self, query: Query = Query()) -> int:
        """How many solutions a query has, whatever its limit."""
        where, values = query.where()
        return int(self.rows(f"SELECT count(*) FROM solutions WHERE {where}", values)[0][0])

    def rows(self, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a SELECT gives, for tables and checks."""
        with self._reading():
            return self._connection.execute(words, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment, whatever others write."""
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
            remedy = f"make room, or wait: a writer waits {BUSY_S:.0f} s for another. What was there is there"
            raise GuardStop(f"{self.path} cannot be written: {fault}; {remedy}") from fault

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as fault:
            remedy = "+stage=solutions solutions.action=check says what is damaged"
            problem = InputProblem(str(self.path), f"cannot be read: {fault}", "", "", "", remedy)
            raise InputError(problem) from fault


def _columns(solution: Solution) -> tuple[Any, ...]:
    derived = {"syntax": solution.syntax.hash, "size": solution.syntax.size, "outputs": " ".join(solution.outputs)}
    own = {"key": solution.key, "behaviour": solution.behaviour}
    values = {**vars(solution.verdict), **vars(solution), **own, **derived}
    return tuple(values[name] for name in COLUMNS)


def _solution(row: Sequence[Any]) -> Solution:
    values = dict(zip(COLUMNS, row, strict=True))
    own = {**{name: values[name] for name in OWN}, "outputs": tuple(values["outputs"].split())}
    return Solution(**own, verdict=Verdict(**{name: values[name] for name in JUDGED}))


def _other_keeping(option: str, there: Keeping, asked: Keeping | None) -> InputProblem:
    shown = [f"{one.per_task} a task by {', '.join(one.quality)}" for one in (asked, there) if one]
    what = "the store was made to keep otherwise"
    return InputProblem(option, what, shown[0], shown[1], "", "drop the options, or merge into a new store")
