"""The completions of a batch that is in progress, one JSON object a line, so that an interrupt loses none of them.

A line has left the process before anything else is done with its completion. A last line that `kill -9` has cut short is
dropped. The journal is removed once the batch's own file is complete.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.records.guards_disk import writing

FOLDER = "journal"
"""Of a run directory; holds the journals of its measurements."""


class CompletionJournal:
    """
    Args:
        path: nothing is read or written before the first use.
        identity: what decides the completions besides their keys, such as a hash of the weights. A journal of another
            identity is started over.
    """

    def __init__(self, path: Path, identity: str):
        self.path, self._identity = path, identity
        self._file: int | None = None

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of earlier processes, by key; whoever uses one takes it out."""
        lines = _complete_lines(self.path)
        if _parsed(next(lines, b"")) != self._head:
            return {}
        rows = (_parsed(line) for line in lines)
        return {row["key"]: row for row in rows if row is not None and "key" in row}

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row with its key. Raises GuardStop where the disk is full."""
        with writing(self.path):
            if self._file is None:
                self._file = self._opened()
            _write(self._file, row)

    def clear(self) -> None:
        """Drop all rows but those that nobody has taken: their batch is in its own file."""
        left = list(self.rows.values())
        self.remove()
        for row in left:
            self.write(row)

    def remove(self) -> None:
        """Remove the file, and the folder of journals if it was the last one."""
        self.close()
        self.path.unlink(missing_ok=True)
        if self.path.parent.name == FOLDER:
            with suppress(OSError):  # Others are in it, or it never existed.
                self.path.parent.rmdir()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def _head(self) -> dict[str, Any]:
        return {"identity": self._identity}

    def _opened(self) -> int:
        """The file, open for writing behind its last complete line; new if it has none of this identity."""
        lines = list(_complete_lines(self.path))
        same = bool(lines) and _parsed(lines[0]) == self._head
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(file, sum(map(len, lines)) if same else 0)
        if not same:
            _write(file, self._head)
        return file


def journal_beside(output: Path, provenance: Mapping[str, Any]) -> CompletionJournal:
    """The journal of a file of rows; `provenance` is everything that determines them."""
    return CompletionJournal(output.with_name(f"{output.name}.journal"), content_hash(provenance))


def _complete_lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with open(path, "rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """None for a line that holds no JSON object."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _write(file: int, row: Mapping[str, Any]) -> None:
    data = memoryview(json.dumps(row, allow_nan=False).encode() + b"\n")
    while data:
        data = data[os.write(file, data) :]
