"""`prepare=edits`: raw sets of edits as normalized rows. Read and index every line, group rows that are alike, place the groups, write.

The index is one SQLite file with the facts of every row; the rows themselves are in a spool beside it. Both are in the folder
`.ingest` of the output, which is removed at the end. A commit writes the rows, the dropped lines and the positions up to which
files are read as one, so that after kill -9 at any time the reading continues from the last commit: the spool is cut to it. The
other steps are fast, and are done again from the index. On disk a row takes about 1.3 KB besides its text; in memory nothing.

From the index come the files of rows, `SPLIT/SET.jsonl` for every split and set that has rows, `dropped.csv` with every line
that gave none, and the counts of `stats.md`. They are complete under their names, and the same bytes after any kill.
"""

import csv
import fcntl
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Self

from rlvr_exp import __version__
from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.hashing import checksum, content_hash
from rlvr_exp.domains.edits.alike import HELD_OUT, RANKED, HeldOut, bands_of, group_alike, place, signature
from rlvr_exp.domains.edits.normalize import (
    READERS,
    Dropped,
    Line,
    Normalized,
    SetReader,
    SetSource,
    name_below,
    normalize,
    read_lines,
)
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.rows import METADATA, DatasetMetadata, NormalizedRecord
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.rows import Row, split_of_file

STATS, DROPPED = "stats.md", "dropped.csv"
NOT_DECIDING = ("_target_", "path", "also", "output", "held_out")
"""Options that do not decide the rows, or decide them by the content of their files."""
LIBRARIES = ("datasketch", "rapidfuzz")
"""Those that decide the rows."""
COMMIT_S = 2.0
"""Seconds of work that a kill may lose."""
CHUNK_ROWS, CHUNK_CHARACTERS = 64, 1 << 21
"""Rows that are held before their tokens are counted and they are written."""
FOLDER = ".ingest"
CACHE_KB = 2048
"""Memory that SQLite may use for its pages and for sorting, whatever the number of rows."""
GB = 1e9
CountTokens = Callable[[Sequence[NormalizedRecord]], list[int]]
"""Tokens of the three texts of each record."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shards (shard INTEGER PRIMARY KEY, position INTEGER, number INTEGER, done INTEGER);
CREATE TABLE IF NOT EXISTS dropped (shard INTEGER, number INTEGER, reason TEXT, detail TEXT);
CREATE TABLE IF NOT EXISTS bands (band INTEGER, place INTEGER, n INTEGER);
CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, shard INTEGER, number INTEGER, id TEXT, key BLOB, demanded TEXT,
    source TEXT, language TEXT, licence TEXT, answered INTEGER, tested INTEGER, characters INTEGER, tokens INTEGER,
    bytes INTEGER, signature BLOB);
"""
_INSERT = """
INSERT INTO rows VALUES (:n, :shard, :number, :id, :key, :demanded, :source, :language, :licence, :answered, :tested, :characters,
    :tokens, :bytes, :signature)
"""
_KEPT = """
SELECT split_of.split, source, count(*), sum(characters), sum(tokens), sum(bytes), sum(answered), sum(tested)
FROM rows JOIN (SELECT n, split FROM placed WHERE reason = '') AS split_of USING (n)
GROUP BY split_of.split, source ORDER BY split_of.split, source
"""
_NAMES = ("split", "source", "records", "characters", "tokens", "bytes", "with_after", "with_tests")
_BY = "SELECT {0}, count(*) FROM rows JOIN placed USING (n) WHERE reason = '' GROUP BY {0} ORDER BY count(*) DESC, {0}"
_REASONS = """
SELECT reason, count(*) FROM (SELECT reason FROM dropped UNION ALL SELECT reason FROM placed WHERE reason != '')
GROUP BY reason ORDER BY count(*) DESC, reason
"""
_GROUPS = "SELECT count(DISTINCT root), coalesce(max(size), 0) FROM (SELECT root, count(*) AS size FROM grouped GROUP BY root)"
_EVERY = """
SELECT shard, number, reason, detail FROM dropped
UNION ALL SELECT shard, number, reason, '' FROM rows JOIN placed USING (n) WHERE reason != ''
ORDER BY shard, number
"""


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
        found = json.loads((output / METADATA).read_text(encoding="utf-8"))
        before = {key: found.get(key) for key in provenance}
        if content_hash(before) != content_hash(provenance):
            raise other_rows(output, before, provenance)
        return _report(output, found["counts"])
    with Index(output, provenance | {"code": _code()}) as index:
        Reading(index, held_out, tokens.count if tokens else None, context).read(shards)
        context.progress(kind="wait", name="group alike rows")
        place(index.db, group_alike(index.db, index.folder / "groups.npy", options.similarity), options, config.seed)
        counts = _write(index, shards, output, provenance, held_out)
        index.remove()
    return _report(output, counts)


@dataclass(frozen=True)
class Shard:
    """One file of a set."""

    number: int
    file: Path
    reader: SetReader
    place: SetSource

    @property
    def name(self) -> str:
        return name_below(self.file, self.place.root)


def shards_of(options: EditSets) -> list[Shard]:
    """All files of all sets, in the order of the sets' names and of theirs.

    Raises:
        InputError: a path has none, or holds a set that forbids training.
    """
    found: list[Shard] = []
    for name, path in sorted({options.set: options.path, **options.also}.items()):
        where = SetSource(Path(path), options)
        if not where.root.exists():
            raise InputError(InputProblem("prepare.also", "not there", path, "an existing folder or file"))
        for file in READERS[name].files(where.root):
            first = next(read_lines(file), None)
            if first is not None and first.values.keys() >= CANITEDIT.keys:
                what = EVALUATION_ONLY[CANITEDIT.name]
                remedy = f"leave it out; prepare.held_out=[{file}] keeps other rows apart from it"
                raise InputError(InputProblem("prepare.path", what, f"{CANITEDIT.name} in {file}", "", "", remedy))
            found.append(Shard(len(found), file, READERS[name], where))
    return found


def check_output(output: Path, roots: Iterable[Path], own: Iterable[str]) -> None:
    """Raises InputError if the output is below a set, whose next reading would read it, or has files and none of its `own`."""
    for root in roots:
        if root.resolve() in (output.resolve(), *output.resolve().parents):
            what, allowed = "is inside a set that is read", "a folder elsewhere"
            raise InputError(InputProblem("prepare.output", what, f"{output} in {root}", allowed))
    found = {entry.name for entry in output.iterdir()} if output.is_dir() else set()
    if found and found.isdisjoint(own):
        what = "holds other files, which would be taken for rows"
        raise InputError(InputProblem("prepare.output", what, ", ".join(sorted(found)[:5]), "a new or empty folder"))


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
    """Hash of this folder's files: another version of the code refuses a begun output."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return content_hash([file.read_text(encoding="utf-8") for file in files])


class Index:
    """The index and the spool of one output, claimed for this process.

    Args:
        provenance: all that decides the rows, in values of JSON.

    Raises:
        InputError: another run writes there, or other rows were begun there.
    """

    def __init__(self, output: Path, provenance: Mapping[str, Any]):
        self.folder = output / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder / "lock", "wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.db = sqlite3.connect(self.folder / "index.sqlite")
            pages = f"cache_size = -{CACHE_KB}"
            for setting in ("journal_mode = WAL", "synchronous = NORMAL", pages, "temp_store = FILE"):
                self.db.execute(f"PRAGMA {setting}")
            self.db.executescript(_SCHEMA)
            now, before = json.dumps(provenance, sort_keys=True), self._meta("provenance")
            if before is None:
                self._set("provenance", now)
                self.db.commit()
            elif before != now:
                raise other_rows(output, json.loads(before), provenance)
        except BlockingIOError as fault:
            self._lock.close()
            raise InputError(InputProblem("prepare.output", "another run writes there", str(output))) from fault
        except BaseException:
            self._lock.close()
            raise
        self._spool = open(self.folder / "rows.jsonl", "ab")
        self._spool.truncate(int(self._meta("spool") or 0))
        self._spool.seek(0, os.SEEK_END)
        self._size = self._spool.tell()
        self._next = self.db.execute("SELECT coalesce(max(n), -1) + 1 FROM rows").fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()
        self.db.close()
        self._lock.close()

    def progress(self, shard: int) -> tuple[int, int, bool]:
        """Position and number of the last indexed line of a file, and whether the file is done."""
        found = self.db.execute("SELECT position, number, done FROM shards WHERE shard = ?", (shard,)).fetchone()
        return (found[0], found[1], bool(found[2])) if found else (0, 0, False)

    def add(self, text: str, key: bytes, bands: Iterable[int], **columns: Any) -> None:
        """Add a row; the next commit keeps it.

        Args:
            text: its line of JSON.
            key: hash of the content: equal edits have equal keys.
            columns: its further columns of the table `rows`.
        """
        data = text.encode("ascii") + b"\n"
        self._spool.write(data)
        self._size += len(data)
        n, self._next = self._next, self._next + 1
        self.db.execute(_INSERT, {"n": n, "bytes": len(data), "key": key, **columns})
        at = int.from_bytes(key[:8], "big", signed=True)
        self.db.executemany("INSERT INTO bands VALUES (?, ?, ?)", [(band, at, n) for band in bands])

    def drop(self, shard: int, number: int, reason: str, detail: str) -> None:
        """Note a line that gives no row."""
        detail = detail.encode("utf-8", "backslashreplace").decode()[:300]
        self.db.execute("INSERT INTO dropped VALUES (?, ?, ?, ?)", (shard, number, reason, detail))

    def commit(self, shard: int, position: int, number: int, done: bool) -> None:
        """Keep all that was added, and the position up to which a file is read."""
        self._spool.flush()
        os.fsync(self._spool.fileno())
        self.db.execute("INSERT OR REPLACE INTO shards VALUES (?, ?, ?, ?)", (shard, position, number, done))
        self._set("spool", str(self._size))
        self.db.commit()

    def spooled(self) -> Iterator[bytes]:
        """The line of every row, in the order of their numbers."""
        self._spool.flush()
        with open(self.folder / "rows.jsonl", "rb") as lines:
            yield from lines

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        shutil.rmtree(self.folder)

    def _meta(self, name: str) -> str | None:
        found = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def _set(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def other_rows(output: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> InputError:
    """The refusal of a folder whose rows were made otherwise; names the differing values."""
    old, new = _flat(before), _flat(now)
    differs = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    what, remedy = f"holds rows made otherwise: {', '.join(differs)}", "name another folder, or remove this one"
    return InputError(
        InputProblem("prepare.output", what, str(output), "an empty folder, or the same options", "", remedy)
    )


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {above + key: value}
    return found


@dataclass
class Reading:
    """Fills an index.

    Args:
        held_out: the tasks that no row may share content with.
        tokens: None: tokens are not counted.
    """

    index: Index
    held_out: HeldOut
    tokens: CountTokens | None
    context: RunContext
    _chunk: list[tuple[Shard, Line, Normalized]] = field(default_factory=list)
    _characters: int = 0

    def read(self, shards: Sequence[Shard]) -> None:
        """Index every line of every file. Raises Interrupted if a stop was requested; all that is indexed stays."""
        total, done = sum(shard.file.stat().st_size for shard in shards), 0
        for shard in shards:
            self._report(done, total)
            position, number, finished = self.index.progress(shard.number)
            if not finished:
                last = time.monotonic()
                for line in read_lines(shard.file, position, number):
                    self._take(shard, line)
                    position, number = line.position, line.number
                    if len(self._chunk) >= CHUNK_ROWS or self._characters >= CHUNK_CHARACTERS:
                        self._flush()
                    if time.monotonic() - last > COMMIT_S:
                        self._commit(shard, position, number, False)
                        self._report(done + (position if shard.file.suffix == ".jsonl" else 0), total)
                        last = time.monotonic()
                self._commit(shard, position, number, True)
            done += shard.file.stat().st_size
            self._report(done, total)

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
            found.text,
            bytes.fromhex(key),
            bands_of(numbers, shard.place.options.similarity),
            shard=shard.number,
            number=line.number,
            id=record.id,
            demanded=found.split,
            source=record.source,
            language=record.language,
            licence=record.licence,
            answered=record.after is not None,
            tested=bool(record.tests),
            characters=sum(len(text or "") for text in (record.instruction, record.before, record.after)),
            tokens=tokens,
            signature=numbers.astype("<u4").tobytes(),
        )

    def _report(self, done: int, total: int) -> None:
        self.context.progress(kind="phase", name="read (kB)", done=done // 1000, total=max(1, total // 1000))


def _write(
    index: Index, shards: Sequence[Shard], output: Path, provenance: Mapping[str, Any], held_out: HeldOut
) -> dict[str, Any]:
    counts = counts_of(index.db)
    if not counts["records"]:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in counts["dropped"].items())
        what, remedy = "no record is kept", "look at prepare.set and the filters"
        index.remove()
        raise InputError(InputProblem("prepare.path", what, reasons or "no lines", remedy=remedy))
    # Records by the values of a column, the most frequent first.
    languages, licences = (dict(index.db.execute(_BY.format(name)).fetchall()) for name in ("language", "licence"))
    files = write_splits(index, shards, output)
    write_dropped(index, shards, output)
    write_text(output / STATS, page(counts, languages, licences, held_out.count) + "\n")
    found = DatasetMetadata(licences=licences, languages=languages, counts=counts, files=files, **provenance)
    found.write(output)
    return counts


def counts_of(db: sqlite3.Connection) -> dict[str, Any]:
    """All counts, in values of JSON."""
    kept = [dict(zip(_NAMES, row, strict=True)) for row in db.execute(_KEPT)]
    kept.sort(key=lambda row: (RANKED.index(row["split"]), row["source"]))
    groups, largest = db.execute(_GROUPS).fetchone()
    read = db.execute("SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM dropped)").fetchone()[0]
    return {
        "lines": read,
        "records": sum(row["records"] for row in kept),
        "splits": kept,
        "dropped": dict(db.execute(_REASONS).fetchall()),
        "groups": groups,
        "largest_group": largest,
    }


def write_splits(index: Index, shards: Sequence[Shard], output: Path) -> dict[str, str]:
    """Write all files of rows; returns the SHA-256 of each by its path below the output."""
    folder = index.folder / "splits"
    sets = {shard.number: shard.reader.name for shard in shards}
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
    places = {shard.number: (shard.reader.name, shard.name) for shard in shards}
    temporary = index.folder / DROPPED
    with open(temporary, "w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("set", "file", "line", "reason", "detail"))
        for shard, number, reason, detail in index.db.execute(_EVERY):
            rows.writerow((*places[shard], number, reason, detail))
    os.replace(temporary, output / DROPPED)


def page(counts: Mapping[str, Any], languages: Mapping[str, int], licences: Mapping[str, int], held_out: int) -> str:
    """The page, in Markdown."""
    kept = counts["splits"]
    total = {"split": "all", "source": ""} | {name: sum(row[name] for row in kept) for name in _NAMES[2:]}
    rows = [
        (
            *(row[name] for name in ("split", "source", "records", "characters")),
            row["tokens"] or "not counted",
            f"{row['bytes'] / GB:.6f}",
            row["with_after"],
            row["with_tests"],
        )
        for row in (*kept, total)
    ]
    lines = [
        "# Normalized edits",
        "",
        f"{counts['lines']} lines read, {counts['records']} records kept. Every record has an id, a source, a language, an "
        "instruction and a text before.",
        f"{counts['groups']} groups of alike rows, the largest of {counts['largest_group']}. "
        + (f"{held_out} held-out tasks share no content with them." if held_out else "No set was held out."),
    ]
    named = ((name or "not named", count) for name, count in licences.items())
    head = ("split", "source", "records", "characters", "tokens", "GB", "with a text after", "with tests")
    lines += ["", *table(head, rows)]
    lines += ["", *table(("dropped because of", "lines"), counts["dropped"].items())]
    lines += ["", *table(("language", "records"), languages.items())]
    lines += ["", *table(("licence", "records"), named)]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Lines of Markdown."""
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)]


def _report(output: Path, counts: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    metrics = {"lines": counts["lines"], "records": counts["records"], "dropped": sum(counts["dropped"].values())}
    for row in counts["splits"]:
        name = f"records/{row['split']}"
        metrics[name] = metrics.get(name, 0) + row["records"]
    return f"written: {output}\n\n{(output / STATS).read_text(encoding='utf-8').strip()}", metrics
