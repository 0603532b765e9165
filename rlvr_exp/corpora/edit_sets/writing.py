"""The files of rows: `SPLIT/SET.jsonl` for every split and set that has rows, and `dropped.csv` with every line that gave
none. They are complete under their names, and the same bytes whatever was killed on the way.
"""

import csv
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from rlvr_exp.core.checksums import checksum
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.corpora.edit_sets.index import Index
from rlvr_exp.corpora.edit_sets.reading import Shard

DROPPED = "dropped.csv"
_EVERY = """
SELECT shard, number, reason, detail FROM dropped
UNION ALL SELECT shard, number, reason, '' FROM rows JOIN placed USING (n) WHERE reason != ''
ORDER BY shard, number
"""


def check_output(output: Path, roots: Iterable[Path], own: Iterable[str]) -> None:
    """Raises InputError where the output is below a set, whose next reading would read it, or has files and none of its `own`."""
    for root in roots:
        if root.resolve() in (output.resolve(), *output.resolve().parents):
            what, allowed = "is inside a set that is read", "a folder elsewhere"
            raise InputError(InputProblem("prepare.output", what, f"{output} in {root}", allowed))
    found = {entry.name for entry in output.iterdir()} if output.is_dir() else set()
    if found and found.isdisjoint(own):
        what = "holds other files, which would be taken for rows"
        raise InputError(InputProblem("prepare.output", what, ", ".join(sorted(found)[:5]), "a new or empty folder"))


def write_splits(index: Index, shards: Sequence[Shard], output: Path) -> dict[str, str]:
    """Write all files of rows; returns the SHA-256 of each by its path below the output."""
    folder = index.folder / "splits"
    sets = {shard.number: shard.reader.NAME for shard in shards}
    placed = index.db.execute("SELECT split, reason, shard FROM placed JOIN rows USING (n) ORDER BY n")
    names: dict[str, IO[bytes]] = {}
    with ExitStack() as stack:
        for (split, reason, shard), line in zip(placed, index.spooled(), strict=True):
            if reason:
                continue
            name = f"{split}/{sets[shard]}.jsonl"
            if name not in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                names[name] = stack.enter_context(open(folder / name, "wb"))
            names[name].write(line)
    for name in names:
        (output / name).parent.mkdir(exist_ok=True)
        os.replace(folder / name, output / name)
    return {name: checksum(output / name) for name in sorted(names)}


def write_dropped(index: Index, shards: Sequence[Shard], output: Path) -> None:
    """Write `dropped.csv`: set, file, line, reason, detail."""
    places = {shard.number: (shard.reader.NAME, shard.name) for shard in shards}
    temporary = index.folder / DROPPED
    with open(temporary, "w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("set", "file", "line", "reason", "detail"))
        for shard, number, reason, detail in index.db.execute(_EVERY):
            rows.writerow((*places[shard], number, reason, detail))
    os.replace(temporary, output / DROPPED)
