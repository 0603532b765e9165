"""The rounds of a run as files of its directory, `self_play/round_001.jsonl.gz`: what a resumed run needs of them, and what
a person reads. Written whole or not at all; equal rounds give equal bytes."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvr_exp.config.self_play import KINDS
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.records.guards_disk import writing
from rlvr_exp.self_play.found import Found, from_line, to_line
from rlvr_exp.tasks.base import Domain, Task

Rows = Mapping[str, Sequence[Found]]
"""By kind."""


def round_path(run_dir: Path, number: int) -> Path:
    """Of a round, counted from 0."""
    return run_dir / "self_play" / f"round_{number + 1:03d}.jsonl.gz"


def write_rows(run_dir: Path, number: int, rows: Rows) -> None:
    lines = [json.dumps(to_line(one), allow_nan=False) + "\n" for kind in KINDS for one in rows[kind]]
    path = round_path(run_dir, number)
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(gzip.compress("".join(lines).encode("ascii"), 6, mtime=0))


def read_rows(run_dir: Path, number: int, tasks: Mapping[str, Task], domain: Domain) -> dict[str, list[Found]]:
    """The rows of a round that was written.

    Args:
        tasks: the training tasks, by id.

    Raises:
        InputError: the file is missing or damaged, or holds a task that is no longer there.
    """
    path = round_path(run_dir, number)
    rows: dict[str, list[Found]] = {kind: [] for kind in KINDS}
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            for line in lines:
                one = from_line(json.loads(line), tasks, domain)
                rows[one.kind].append(one)
    except (OSError, EOFError, ValueError, KeyError) as fault:
        what, remedy = "cannot be read as a round of self-play", "start the run again in another directory"
        raise InputError(InputProblem(str(path), what, f"{type(fault).__name__}: {fault}", "", "", remedy)) from fault
    return rows
