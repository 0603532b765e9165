"""Problems at a path with the split of each: rows of one's own, the embedded corpus, or a set that `data=code` reads."""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.problems.rows import ProblemRow, load
from rlvr_exp.tasks.problems.sets import rows_of, set_at
from rlvr_exp.tasks.splits import Item, split, tied
from rlvr_exp.tasks.tables import SPLITS

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
