"""Raw sets of edits as normalized rows: read and index every line, group rows that are alike, place the groups, write.

Only the first takes long, and it is continued after a kill; the rest is done again from the index. Memory does not grow with
the rows: the index and the spool are files (rlvr_exp.domains.edits.ingest.index).
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlvr_exp import __version__
from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.hashing import checksum, content_hash
from rlvr_exp.domains.edits.ingest.alike import HELD_OUT, HeldOut, bands_of, group_alike, place, signature
from rlvr_exp.domains.edits.ingest.index import (
    FOLDER,
    Index,
    Indexed,
    Shard,
    check_output,
    counts_of,
    other_rows,
    page,
    tally,
    write_dropped,
    write_splits,
)
from rlvr_exp.domains.edits.ingest.lines import Line, name_below, read_lines
from rlvr_exp.domains.edits.ingest.normalize import Dropped, Normalized, Place, normalize
from rlvr_exp.domains.edits.ingest.sets import READERS
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.rows import METADATA, DatasetMetadata, NormalizedRecord
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.rows import Row, split_of_file

STATS = "stats.md"
NOT_DECIDING = ("_target_", "path", "also", "output", "held_out")
"""Options that are not among what decides the rows, or are there by their content."""
LIBRARIES = ("datasketch", "rapidfuzz")
"""Those that decide the rows."""
COMMIT_S = 2.0
"""Seconds of work that a kill may lose."""
CHUNK_ROWS, CHUNK_CHARACTERS = 64, 1 << 21
"""Rows that are held before their tokens are counted and they are written."""
CountTokens = Callable[[Sequence[NormalizedRecord]], list[int]]
"""Tokens of the three texts of each record."""


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


class Tokens:
    """A tokenizer that counts.

    Raises:
        InputError: it cannot be loaded.
    """

    def __init__(self, model: Model):
        from rlvr_exp.models.policy import load_tokenizer  # Not at the top: it brings torch, which only counting needs.

        self._tokenizer = load_tokenizer(model)

    @property
    def fingerprint(self) -> str:
        """Hash of the vocabulary."""
        return content_hash(sorted(self._tokenizer.get_vocab().items()))

    def count(self, records: Sequence[NormalizedRecord]) -> list[int]:
        """Tokens of instruction, text before and text after together, of each record."""
        texts = [text for record in records for text in (record.instruction, record.before, record.after or "")]
        ids = self._tokenizer(texts, add_special_tokens=False, verbose=False).input_ids
        return [sum(map(len, ids[at : at + 3])) for at in range(0, len(ids), 3)]


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits, `metadata.json`, `stats.md` and `dropped.csv`.

    Raises:
        InputError: a path has no set, or one that forbids training; the output holds rows made otherwise; no row is kept.
    """
    options: EditSets = config.prepare
    output = Path(options.output or context.directory / "edits")
    shards = shards_of(options)
    check_output(output, {shard.place.root for shard in shards}, (METADATA, FOLDER))
    context.progress(kind="wait", name="look at the files")
    held_out = HeldOut(options.held_out, options.similarity)
    tokens = Tokens(config.model) if options.count_tokens else None
    provenance = _provenance(config, shards, held_out, tokens)
    if (output / METADATA).is_file():
        return _complete(output, provenance)
    with Index(output, provenance | {"code": _code()}) as index:
        Reading(index, held_out, tokens.count if tokens else None, context).read(shards)
        context.progress(kind="wait", name="group alike rows")
        place(index.db, group_alike(index.db, index.folder / "groups.npy", options.similarity), options, config.seed)
        counts = _write(index, shards, output, provenance, held_out)
        index.remove()
    return _report(output, counts)


def shards_of(options: EditSets) -> list[Shard]:
    """All files of all sets, in the order of the sets' names and of theirs.

    Raises:
        InputError: a path has none, or holds a set that forbids training.
    """
    found: list[Shard] = []
    for name, path in sorted({options.set: options.path, **options.also}.items()):
        where = Place(Path(path), options)
        if not where.root.exists():
            raise InputError(InputProblem("prepare.also", "not there", path, "an existing folder or file"))
        for file in READERS[name].files(where.root):
            _check_allowed(file)
            found.append(Shard(len(found), file, READERS[name], where))
    return found


def _check_allowed(file: Path) -> None:
    """Raises InputError for a file of a set that may not be trained on, by its first line."""
    first = next(read_lines(file), None)
    if first is not None and first.values.keys() >= CANITEDIT.keys:
        what = EVALUATION_ONLY[CANITEDIT.name]
        remedy = f"leave it out; prepare.held_out=[{file}] keeps other rows apart from it"
        raise InputError(InputProblem("prepare.path", what, f"{CANITEDIT.name} in {file}", "", "", remedy))


def _provenance(config: Config, shards: Sequence[Shard], held_out: HeldOut, tokens: Tokens | None) -> dict[str, Any]:
    """All that decides the rows, as `metadata.json` has it."""
    sources: dict[str, dict[str, str]] = {}
    for shard in shards:
        root = shard.place.root
        if shard.reader.name not in sources:
            files = (shard.reader.sources or shard.reader.files)(root)
            sources[shard.reader.name] = {name_below(file, root): checksum(file) for file in files}
    options = {key: value for key, value in vars(config.prepare).items() if key not in NOT_DECIDING}
    options |= {
        "seed": config.seed,
        "held_out": held_out.fingerprint,
        "tokenizer": tokens.fingerprint if tokens else "",
    }
    versions = {"rlvr_exp": __version__} | {name: version(name) for name in LIBRARIES}
    return {"sources": sources, "options": options, "versions": versions}


def _code() -> str:
    """Hash of this folder's files: what one version has begun, no other continues."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return content_hash([file.read_text(encoding="utf-8") for file in files])


def _write(
    index: Index, shards: Sequence[Shard], output: Path, provenance: Mapping[str, Any], held_out: HeldOut
) -> dict[str, Any]:
    counts = counts_of(index.db)
    if not counts["records"]:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in counts["dropped"].items())
        what = "no record is kept"
        index.remove()
        raise InputError(
            InputProblem("prepare.path", what, reasons or "no lines", remedy="look at prepare.set and the filters")
        )
    languages, licences = (tally(index.db, column) for column in ("language", "licence"))
    files = write_splits(index, shards, output)
    write_dropped(index, shards, output)
    write_text(output / STATS, page(counts, languages, licences, held_out.count) + "\n")
    found = DatasetMetadata(licences=licences, languages=languages, counts=counts, files=files, **provenance)
    found.write(output)
    return counts


def _complete(output: Path, provenance: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """The report of an output that is there already. Raises InputError where it was made otherwise."""
    found = json.loads((output / METADATA).read_text(encoding="utf-8"))
    before = {key: found.get(key) for key in provenance}
    if content_hash(before) != content_hash(provenance):
        raise other_rows(output, before, provenance)
    return _report(output, found["counts"])


def _report(output: Path, counts: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    metrics = {"lines": counts["lines"], "records": counts["records"], "dropped": sum(counts["dropped"].values())}
    for row in counts["splits"]:
        name = f"records/{row['split']}"
        metrics[name] = metrics.get(name, 0) + row["records"]
    return f"written: {output}\n\n{(output / STATS).read_text(encoding='utf-8').strip()}", metrics
