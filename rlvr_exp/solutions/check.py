"""What is wrong with a store: damaged pages, rows that are not what their own programs and outputs say, bounds not kept.
Reads only."""

from collections.abc import Iterator

from rlvr_exp.core.errors import InputError
from rlvr_exp.solutions.store import Query, SolutionStore

PAGES = 20
"""Faults of pages that are named."""


def faults(store: SolutionStore) -> list[str]:
    """Every fault in a line; empty for a sound store."""
    try:
        with store.snapshot():
            pages = [line for (line,) in store.rows(f"PRAGMA integrity_check({PAGES})") if line != "ok"]
            return [f"file: {line}" for line in pages] or [*_of_rows(store), *_of_tasks(store)]
    except (InputError, ValueError, TypeError) as fault:
        return [f"a row is no solution: {fault}"]


def _of_rows(store: SolutionStore) -> Iterator[str]:
    """One task at a time, so that the memory is bounded."""
    columns = "key, behaviour, syntax, size"
    for (task,) in store.rows("SELECT DISTINCT task FROM solutions ORDER BY task"):
        written = store.rows(f"SELECT {columns} FROM solutions WHERE task = ? ORDER BY number", [task])
        for one, row in zip(store.find(Query(task=task)), written, strict=True):
            derived = (one.key, one.behaviour, one.syntax.hash, one.syntax.size)
            wrong = [
                name for name, ours, theirs in zip(columns.split(", "), derived, row, strict=True) if ours != theirs
            ]
            if wrong:
                yield f"task {task}: {' and '.join(wrong)} of {row[0]} are not those of its program and outputs"


def _of_tasks(store: SolutionStore) -> Iterator[str]:
    most = store.keeping.per_task
    words = "SELECT task, count(*) FROM solutions GROUP BY task HAVING count(*) > ?"
    for task, count in store.rows(words, [most]):
        yield f"task {task}: {count} solutions, at most {most} are kept"
    twice = "SELECT task, count(*) FROM solutions GROUP BY task, behaviour, syntax HAVING count(*) > 1"
    for task, count in store.rows(twice):
        yield f"task {task}: {count} solutions of one behaviour and one syntax tree"
