"""Solutions as JSON lines: written whole or not at all, checked to the last line before one is taken."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.solutions.record import Solution, from_row, to_row
from rlvr_exp.tasks.rows import RowLine, lines

OPTION = "solutions.input"
LONGEST = 64 << 20
"""Bytes of a line."""
SHOWN = 20
"""Faults that are named."""


def write_rows(path: Path, solutions: Iterable[Solution]) -> int:
    """Write a file; returns the number of rows."""
    count = 0
    with replacing(path) as temporary, open(temporary, "w", encoding="ascii") as out:
        for one in solutions:
            out.write(json.dumps(to_row(one), allow_nan=False) + "\n")
            count += 1
    return count


def checked_rows(path: Path) -> int:
    """The number of rows. Raises InputError with every line that is no solution."""
    count, faults = 0, []
    for line in lines(path, LONGEST, OPTION):
        count += 1
        try:
            _solution(line)
        except (ValueError, TypeError, RecursionError) as fault:
            faults.append(InputProblem(OPTION, f"line {line.number} is no solution: {fault}", str(path)))
    if len(faults) > SHOWN:
        more = f"{len(faults) - SHOWN} further lines are none"
        faults = [*faults[:SHOWN], InputProblem(OPTION, more, str(path), "", "", "mend these first")]
    if faults:
        raise InputError(*faults)
    return count


def read_rows(path: Path) -> Iterator[Solution]:
    """The solutions of a file that was checked."""
    return map(_solution, lines(path, LONGEST, OPTION))


def _solution(line: RowLine) -> Solution:
    row = json.loads(line.text) if line.text is not None else None
    if not isinstance(row, dict):
        raise ValueError(f"longer than {LONGEST >> 20} MB" if line.text is None else "not a JSON object")
    return from_row(row)
