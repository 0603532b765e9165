"""Reading all files of all sets into an index, line by line, from where the last commit left off."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets.draft import Dropped, Place
from rlvr_exp.corpora.edit_sets.held_out import HELD_OUT, HeldOut
from rlvr_exp.corpora.edit_sets.index import Index, Indexed
from rlvr_exp.corpora.edit_sets.lines import Line, read_lines
from rlvr_exp.corpora.edit_sets.normalize import Normalized, normalize
from rlvr_exp.corpora.edit_sets.signature import bands_of, signature
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.edits.rows import NormalizedRecord
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.tables import split_of_file

COMMIT_S = 2.0
"""Seconds of work that a kill may lose."""
CHUNK_ROWS, CHUNK_CHARACTERS = 64, 1 << 21
"""Rows that are held before their tokens are counted and they are written."""
CountTokens = Callable[[Sequence[NormalizedRecord]], list[int]]
"""Tokens of the three texts of each record."""


@dataclass(frozen=True)
class Shard:
    """One file of a set."""

    number: int
    file: Path
    reader: ModuleType
    place: Place

    @property
    def name(self) -> str:
        """Its path below the set's, which names it in what is written."""
        root = self.place.root
        return self.file.name if root == self.file else self.file.relative_to(root).as_posix()


@dataclass
class Reading:
    """Fills an index.

    Args:
        held_out: what no row may share content with.
        tokens: None: tokens are not counted.
    """

    index: Index
    held_out: HeldOut
    tokens: CountTokens | None
    context: RunContext
    _chunk: list[tuple[Shard, Line, Normalized]] = field(default_factory=list)
    _characters: int = 0

    def read(self, shards: Sequence[Shard]) -> None:
        """Index every line of every file. Raises Interrupted where a stop was requested; what is indexed stays."""
        total, done = sum(shard.file.stat().st_size for shard in shards), 0
        for shard in shards:
            self._report(done, total)
            position, number, finished = self.index.progress(shard.number)
            if not finished:
                for at in self._lines(shard, position, number):
                    self._commit(shard, *at)
                    self._report(done + (at[0] if shard.file.suffix == ".jsonl" else 0), total)
            done += shard.file.stat().st_size

    def _lines(self, shard: Shard, position: int, number: int) -> Iterator[tuple[int, int, bool]]:
        """Take the lines of a file; yields, where a commit is due, place and number of a line and whether it is the last."""
        last = time.monotonic()
        for line in read_lines(shard.file, position, number):
            self._take(shard, line)
            position, number = line.position, line.number
            if len(self._chunk) >= CHUNK_ROWS or self._characters >= CHUNK_CHARACTERS:
                self._flush()
            if time.monotonic() - last > COMMIT_S:
                yield position, number, False
                last = time.monotonic()
        yield position, number, True

    def _take(self, shard: Shard, line: Line) -> None:
        row = Row(line.values, f"{shard.name}, line {line.number}", split_of_file(shard.file))
        try:
            found = normalize(line, row, shard.reader, shard.place)
        except Dropped as fault:
            self.index.drop(shard.number, line.number, fault.reason, fault.detail)
            return
        self._chunk.append((shard, line, found))
        self._characters += len(found.text)

    def _commit(self, shard: Shard, position: int, number: int, done: bool) -> None:
        self._flush()
        self.index.commit(shard.number, position, number, done)

    def _flush(self) -> None:
        records = [found.record for _, _, found in self._chunk]
        counts = self.tokens(records) if self.tokens and records else [0] * len(records)
        for (shard, line, found), tokens in zip(self._chunk, counts, strict=True):
            self._add(shard, line, found, tokens)
        self._chunk, self._characters = [], 0

    def _add(self, shard: Shard, line: Line, found: Normalized, tokens: int) -> None:
        record = found.record
        numbers = signature(*(text for text in (record.before, record.after) if text))
        # A published test set may be among what is held out; its own rows are never trained on.
        if found.split != "test" and (task := self.held_out.sharing(record, numbers)):
            self.index.drop(shard.number, line.number, HELD_OUT, task)
            return
        key = content_hash([record.language, record.instruction, record.before, record.after])
        self.index.add(
            Indexed(
                shard.number,
                line.number,
                record.id,
                bytes.fromhex(key),
                found.split,
                record.source,
                record.language,
                record.licence,
                record.after is not None,
                bool(record.tests),
                sum(len(text or "") for text in (record.instruction, record.before, record.after)),
                tokens,
                found.text,
                numbers.astype("<u4").tobytes(),
                tuple(bands_of(numbers, shard.place.options.similarity)),
            )
        )

    def _report(self, done: int, total: int) -> None:
        self.context.progress(kind="phase", name="read (kB)", done=done // 1000, total=max(1, total // 1000))
