"""Rows of data sets: JSON lines, packed (`.gz`, `.xz`, `.zst`) or not, JSON lists, Parquet files and folders of Hugging Face `datasets`
(`save_to_disk`). Every fault names its file, line and key.

If the name of a file begins with a split (`train.jsonl`, `validation-00000-of-00001.parquet`), or a folder of `save_to_disk` names
it, the split of its rows is that split. `lines` streams a file of any size in bounded memory.
"""

import gzip
import hashlib
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from rlvr_exp.core.errors import InputError, InputProblem

PARQUET, ARROW = TABLES = (".parquet", ".arrow")
PACKED = (".gz", ".xz", ".zst")
ROWS = (".jsonl", *(f".jsonl{ending}" for ending in PACKED), ".json", *TABLES)
SHOWN = 20
"""Faults printed before the rest is only counted."""
Found = TypeVar("Found")


class HasId(Protocol):
    @property
    def id(self) -> str: ...


Named = TypeVar("Named", bound=HasId)


def _from_zstandard(data: bytes) -> bytes:
    with _zstandard(io.BytesIO(data)) as unpacked:
        return unpacked.read()


def _zstandard(packed: IO[bytes]) -> Any:
    """Unpacks a stream. Reading raises OSError if it is damaged."""
    import pyarrow  # Not at the top: few runs read such a file.

    return io.BufferedReader(pyarrow.CompressedInputStream(packed, "zstd"))


_UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress, ".zst": _from_zstandard}


@dataclass(frozen=True)
class Row:
    """One row and its place in a file."""

    values: Mapping[str, Any]
    where: str
    split: str = ""
    """The split that its file or folder is named after, if it is."""

    def text(self, key: str, default: str | None = None) -> str:
        """The text under a key. Raises InputError if it is absent and has no default, or is no text."""
        value = self.values.get(key, default)
        return value if isinstance(value, str) else self._refuse(key, "text")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; an absent list is empty."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            self._refuse(key, "a list of text")
        return tuple(value)

    def number(self, key: str) -> int:
        value = self.values.get(key)
        return value if type(value) is int else self._refuse(key, "a whole number")

    def real(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if real else self._refuse(key, "a number")

    def rows(self, key: str) -> list[list[Any]]:
        """A list of argument lists."""
        value = self.values.get(key)
        if isinstance(value, list) and all(isinstance(part, list) for part in value):
            return value
        return self._refuse(key, "a list of argument lists")

    def _refuse(self, key: str, allowed: str) -> Any:
        got = repr(self.values[key])[:60] if key in self.values else "nothing"
        raise InputError(InputProblem(f"{self.where}, {key}", f"not {allowed}", got=got))


def read_rows(file: Path) -> Iterator[Row]:
    """Every row of a file. Raises InputError: damaged, not JSON, or a row that is no object."""
    split = split_named_for(file)
    if file.suffix in TABLES:
        for number, values in enumerate(table_rows(file), 1):
            yield Row(values, f"{file}, row {number}", split)
    elif file.suffix == ".json":
        found = _parsed(_content(file), str(file))
        for number, value in enumerate(found if isinstance(found, list) else [found], 1):
            yield _row(value, f"{file}, entry {number}", split)
    else:
        for number, line in enumerate(_content(file).split("\n"), 1):
            if line.strip():
                yield _row(_parsed(line, f"{file}, line {number}"), f"{file}, line {number}", split)


def first_row(file: Path) -> Row:
    """The first row; its keys distinguish the sets. A row without keys if the file is empty. Raises InputError."""
    return next(read_rows(file), Row({}, str(file)))


def rows_below(path: Path, read: Callable[[Row, str], Found], nothing: InputProblem, leaving: str = "") -> list[Found]:
    """Results of `read` for every row at or below a path and the split of its file, by file and line.

    Args:
        nothing: the problem if there is no row.
        leaving: the name of files that have no rows.

    Raises:
        InputError: no row, or any file, row or key is wrong.
    """
    found: list[Found] = []
    faults: list[InputProblem] = []
    for file in _files(path, leaving):
        try:
            for row in read_rows(file):
                _add(row, read, found, faults)
        except InputError as fault:
            faults += fault.problems
    if not (found or faults):
        faults.append(nothing)
    if faults:
        more = len(faults) - SHOWN
        rest = [InputProblem(str(path), f"and {more} further faults")] if more > 0 else []
        raise InputError(*faults[:SHOWN], *rest)
    return found


def once(rows: list[Named], path: Path) -> list[Named]:
    """The rows. Raises InputError if an id stands twice."""
    twice = [name for name, count in Counter(row.id for row in rows).items() if count > 1]
    if twice:
        raise InputError(InputProblem(str(path), "ids that stand twice", ", ".join(twice[:SHOWN])))
    return rows


def split_of(row: Row) -> str:
    """The split that a row or else its file or folder names; empty if none does.

    Raises:
        InputError: it names one that is not known.
    """
    own = row.values.get("split")
    if own in (None, ""):
        return row.split
    if not (name := _named(str(own))):
        allowed = f"{', '.join(SPLITS)}, or none: then the file's or folder's name says it, or it is drawn"
        raise InputError(InputProblem(f"{row.where}, split", "no such split", str(own), allowed))
    return name


def split_named_for(file: Path) -> str:
    """The split that a file, or else its folder, is named after; empty if neither is."""
    return split_of_file(file) or _named(file.parent.name)


def _named(text: str) -> str:
    """The split of that name; empty if there is none."""
    name = OTHER_NAMES.get(text, text)
    return name if name in SPLITS else ""


def _add(row: Row, read: Callable[[Row, str], Found], found: list[Found], faults: list[InputProblem]) -> None:
    try:
        found.append(read(row, split_of(row)))
    except InputError as fault:
        faults += fault.problems


def _files(path: Path, leaving: str) -> list[Path]:
    if path.is_file():
        return [path]
    inside = sorted(file for file in path.rglob("*") if file.is_file() and (file.name.endswith(ROWS) or is_table(file)))
    rows = [file for file in inside if file.name != leaving]
    return [file for file in rows if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def _content(file: Path) -> str:
    try:
        data = file.read_bytes()
        return _UNPACK.get(file.suffix, bytes)(data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as fault:
        raise InputError(
            InputProblem(str(file), "cannot be read", str(fault), remedy="fetch the file again")
        ) from fault


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as fault:
        raise InputError(InputProblem(where, "not JSON", got=str(fault))) from fault


def _row(value: Any, where: str, split: str) -> Row:
    if not isinstance(value, dict):
        raise InputError(InputProblem(where, "not a row", got=type(value).__name__, allowed="an object"))
    return Row(value, where, split)


SPLITS = ("train", "practice", "dev", "test", "test_unseen", "prompt")
OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev", "evaluation": "test"}
"""Names that other sets give to a split."""
_NAME = re.compile(r"(\w+?)(?:-\d+-of-\d+)?\.(?:jsonl?|parquet)\b")
_STATE, _PARTS = "state.json", "dataset_dict.json"


def split_of_file(file: Path) -> str:
    """The split that a file is named after; empty if there is none."""
    if file.suffix == ARROW:
        name = file.parent.name if (file.parent.parent / _PARTS).is_file() else ""
    else:
        match = _NAME.fullmatch(file.name.removesuffix(file.suffix) if file.suffix in PACKED else file.name)
        name = match[1] if match else ""
    name = OTHER_NAMES.get(name, name)
    return name if name in SPLITS else ""


def is_table(file: Path) -> bool:
    """Whether a file is a Parquet file, or a part of a data set as `save_to_disk` writes it; its caches are none."""
    is_part = file.suffix == ARROW and file.name.startswith("data-") and (file.parent / _STATE).is_file()
    return file.suffix == PARQUET or is_part


def table_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table, without keys that are null. Raises InputError if it is damaged."""
    import pyarrow  # Not at the top: few runs read a table.
    from pyarrow import ipc, parquet

    try:
        with pyarrow.memory_map(str(file)) as source:
            batches = parquet.ParquetFile(source).iter_batches() if file.suffix == PARQUET else ipc.open_stream(source)
            for batch in batches:
                for row in batch.to_pylist():
                    yield {key: value for key, value in row.items() if value is not None}
    except (OSError, pyarrow.ArrowException) as fault:
        raise InputError(
            InputProblem(str(file), "cannot be read as a table", str(fault)[:200], remedy="fetch the file again")
        ) from fault


_GZIP, _ZSTANDARD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Fingerprint:
    """A file's content: a hash of its lines, and the number of rows. Compression does not change it."""

    hash: str
    rows: int


@dataclass(frozen=True)
class RowLine:
    """One row's text, without its end."""

    number: int
    """Counted from 1, blank lines included: where an editor shows it."""
    text: bytes | None
    """None if it is longer than allowed."""


def fingerprint(path: Path) -> Fingerprint:
    """Reads the file once. Raises InputError if it cannot be read to its end."""
    digest, rows = hashlib.blake2b(digest_size=16), 0
    with opened(path, "verify.input") as file:
        blank = True  # of the line that continues
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            first, *others = chunk.split(b"\n")
            blank = blank and not first.strip()
            if others:
                rows += not blank
                rows += sum(bool(line.strip()) for line in others[:-1])
                blank = not others[-1].strip()
        rows += not blank
    return Fingerprint(digest.hexdigest(), rows)


def lines(path: Path, longest: int, option: str = "verify.input") -> Iterator[RowLine]:
    """The rows in order, without blank lines. A line above `longest` bytes is skipped without holding it.

    `option`: the key that names the file, for messages.
    """
    with opened(path, option) as file:
        number = 0
        while text := file.readline(longest + 1):
            number += 1
            if len(text) > longest and not text.endswith(b"\n"):
                while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    continue
                yield RowLine(number, None)
                continue
            if number == 1:
                text = text.removeprefix(_BOM)
            if text.strip():
                yield RowLine(number, text.rstrip(b"\r\n"))


@contextmanager
def opened(path: Path, option: str) -> Iterator[IO[bytes] | gzip.GzipFile | io.BufferedReader]:
    """The file's content, unpacked. Raises InputError for errors of the file while it is read."""
    try:
        with open(path, "rb") as plain:
            begin = plain.read(4)
            plain.seek(0)
            if begin.startswith(_GZIP):
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield unpacked
            elif begin == _ZSTANDARD:
                with _zstandard(plain) as unpacked:
                    yield unpacked
            else:
                yield plain
    except (OSError, EOFError, zlib.error) as fault:
        remedy = "give a complete and readable file"
        raise InputError(InputProblem(option, f"cannot be read: {fault}", str(path), "", "", remedy)) from fault
