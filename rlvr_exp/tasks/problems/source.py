"""Problems at a path with the split of each: rows of one's own, the embedded corpus, or a public set that `data=code` reads, in
its own format.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.code.domain import Code
from rlvr_exp.tasks.code.files import first_row
from rlvr_exp.tasks.code.load import sets_at
from rlvr_exp.tasks.code.own_rows import OWN_ROWS, of_problems
from rlvr_exp.tasks.code.prompt import statement
from rlvr_exp.tasks.code.record import EITHER
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.problems.rows import ProblemRow, load
from rlvr_exp.tasks.splits import Item, split, tied
from rlvr_exp.tasks.tables import SPLITS

NO_REFERENCE = "no solution to be the reference, without which data=code can train"
NO_FUNCTION = "no function that its tests call"


def set_at(path: Path, fractions: tuple[float, float], seed: int) -> Code | None:
    """The set at a path, with its splits; None where problems are there, or nothing that can be read.

    Args:
        fractions: shares of test and dev, where splits are drawn.
    """
    found = sets_at(path)
    if not found or (set(found) == {OWN_ROWS.name} and any(map(_is_problem, found[OWN_ROWS.name]))):
        return None
    test, dev = fractions
    return Code(path=str(path), judge=EITHER, test_fraction=test, dev_fraction=dev, seed=seed)


def _is_problem(file: Path) -> bool:
    return of_problems(first_row(file).values)


def rows_of(code: Code) -> tuple[dict[str, list[ProblemRow]], dict[str, str]]:
    """The problems of a set by split, and the tasks that are none, by id, each with the reason.

    Raises:
        InputError: as the set's own reading.
    """
    placed: dict[str, list[ProblemRow]] = {}
    left_out = dict(code.left_out())
    for name, tasks in code.splits().items():
        for task in tasks:
            if why := _why_not(code, task):
                left_out[task.id] = why
            else:
                placed.setdefault(name, []).append(_row(code, task, name))
    return placed, left_out


def _why_not(code: Code, task: Task) -> str:
    if not task.gold:
        return NO_REFERENCE
    return "" if code.entry_point(task).isidentifier() else NO_FUNCTION


def _row(code: Code, task: Task, split: str) -> ProblemRow:
    return ProblemRow(
        task.id,
        task.inputs if isinstance(task.inputs, str) else statement(task.inputs),
        code.entry_point(task),
        task.gold or "",
        task.problem,
        family=task.family,
        difficulty=task.difficulty,
        split=split,
        wrong=task.negatives,
    )


EMBEDDED = Path(__file__).parents[2] / "assets" / "problems"
ERRORS = EMBEDDED.with_name("problem_errors.jsonl.xz")
"""Wrong programs that a base wrote for problems of the embedded corpus, by their ids."""
EMBEDDED_NAME = "embedded"
"""What stands for the embedded corpus in place of a path."""


@dataclass(frozen=True)
class Source:
    """What is at a path."""

    placed: Mapping[str, Sequence[ProblemRow]]
    """The problems of every split."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Tasks of a set that are no problems, by id, each with the reason."""
    no_training: str = ""
    """Why no policy may be trained on a set; empty where one may."""


def read(path: Path, fractions: tuple[float, float], seed: int, held_out: str = "") -> Source:
    """
    Args:
        fractions: shares of test and dev, drawn from what no file places.
        held_out: what `test` is in place of what it is at `path`, of which no share is then drawn; empty: nothing.

    Raises:
        InputError: nothing is there, or any file, row or key is wrong.
    """
    found = _read(path, (0.0, 0.0) if held_out else fractions, seed)
    return replace(found, placed={**found.placed, "test": _held_out(held_out, seed)}) if held_out else found


def _read(path: Path, fractions: tuple[float, float], seed: int) -> Source:
    if path.is_relative_to(EMBEDDED):
        return Source(place(_embedded(path), fractions, seed))
    code = set_at(path, fractions, seed)
    if code is None:
        return Source(place(load(path), fractions, seed))
    return Source(*rows_of(code), code.no_training())


@cache  # A solver and a tester read the same rows, and 17,600 take seconds.
def _embedded(path: Path) -> Sequence[ProblemRow]:
    with lzma.open(ERRORS, "rt", encoding="ascii") as lines:
        wrong = {one["id"]: tuple(one["wrong"]) for one in map(json.loads, lines)}
    return [replace(row, wrong=(*row.wrong, *wrong.get(row.id, ()))) for row in load(path)]


def _held_out(name: str, seed: int) -> list[ProblemRow]:
    path = EMBEDDED / "test.jsonl.xz" if name == EMBEDDED_NAME else Path(name)
    rows = [row for rows in _read(path, (0.0, 0.0), seed).placed.values() for row in rows]
    return [replace(row, split="test") for row in rows]


def place(rows: Sequence[ProblemRow], fractions: tuple[float, float], seed: int) -> dict[str, list[ProblemRow]]:
    """Every row under its split; the fractions are those of test and dev, drawn from what no file has placed."""
    free = {row.id: row for row in rows if not row.split}
    groups = tied({name: keys_of(row) for name, row in free.items()})
    keys = {name: content_hash(keys_of(row)) for name, row in free.items()}
    parts = split([Item(keys[name], groups[name], free[name].family) for name in free], fractions, seed) if free else {}
    placed: dict[str, list[ProblemRow]] = {name: [] for name in SPLITS}
    for row in rows:
        name = row.split or ("test", "dev", "train")[parts[keys[row.id]]]
        placed[name].append(replace(row, split=name))
    return {name: found for name, found in placed.items() if found}


def keys_of(row: ProblemRow) -> list[str]:
    """The keys of a problem's content: its text and its reference."""
    return [text_key(row.text), program_key(row.solution)]
