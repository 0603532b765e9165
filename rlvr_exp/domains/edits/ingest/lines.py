"""Lines of raw files, one at a time, each with the place from which on the file is read after it.

Plain JSON lines are continued by byte; packed ones (`.gz`, `.xz`), tables and CSV by skipping what was read. Memory is
that of one line, or of one batch of a table. What cannot be read is a line with a fault; nothing is fatal.
"""

import csv
import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.rows import TABLES, is_table, table_rows

LINES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
LONGEST = 1 << 26
"""Bytes of a line, past which it is skipped unread: a file without line ends would fill the memory."""


@dataclass(frozen=True)
class Line:
    """One line of a file: its values, or why it has none."""

    number: int
    """From 1 on."""
    position: int
    """Where the next line begins: bytes, or rows of a table."""
    values: Mapping[str, Any]
    fault: str = ""


def row_files(root: Path) -> list[Path]:
    """JSON lines and tables at or below a path, by name. Raises InputError where there are none."""
    found = [root] if root.is_file() else sorted(file for file in root.rglob("*") if _is_rows(file, root))
    if not found:
        raise nothing_there(root, ", ".join((*LINES, *TABLES)))
    return found


def nothing_there(root: Path, allowed: str) -> InputError:
    """The refusal of a path without files of its set."""
    return InputError(InputProblem("prepare.path", "no files of the set are there", str(root), allowed))


def name_below(file: Path, root: Path) -> str:
    """The path of a file below a set's, which names it in what is written."""
    return file.name if file == root else file.relative_to(root).as_posix()


def read_lines(file: Path, position: int = 0, number: int = 0) -> Iterator[Line]:
    """Every line after the one that ended at `position` and had `number`."""
    if file.suffix in TABLES:
        yield from _table(file, number)
    elif file.suffix == ".csv":
        yield from _csv(file, number)
    else:
        yield from _json(file, position, number)


def _is_rows(file: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
    return not hidden and file.is_file() and (file.name.endswith(LINES) or is_table(file))


def _json(file: Path, position: int, number: int) -> Iterator[Line]:
    try:
        with _opened(file) as source:
            source.seek(position)
            while raw := source.readline(LONGEST):
                position, number = position + len(raw), number + 1
                too_long = len(raw) == LONGEST and not raw.endswith(b"\n")
                while too_long and (more := source.readline(LONGEST)):
                    position += len(more)
                    if more.endswith(b"\n"):
                        break
                if too_long:
                    yield Line(number, position, {}, f"longer than {LONGEST} bytes")
                elif raw.strip():
                    yield _parsed(raw, number, position)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as fault:
        yield Line(number + 1, position, {}, f"the file cannot be read further: {fault}")


def _opened(file: Path) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    if file.suffix == ".gz":
        return gzip.open(file, "rb")
    return lzma.open(file, "rb") if file.suffix == ".xz" else open(file, "rb")


def _parsed(raw: bytes, number: int, position: int) -> Line:
    try:
        values = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as fault:  # UnicodeDecodeError is a ValueError.
        return Line(number, position, {}, str(fault))
    if not isinstance(values, dict):
        return Line(number, position, {}, f"not an object: {type(values).__name__}")
    return Line(number, position, values)


def _table(file: Path, done: int) -> Iterator[Line]:
    number = done
    try:
        for number, values in enumerate(islice(table_rows(file), done, None), done + 1):
            yield Line(number, number, values)
    except InputError as fault:
        yield Line(number + 1, number, {}, str(fault))


def _csv(file: Path, done: int) -> Iterator[Line]:
    number = done
    try:
        with open(file, encoding="utf-8-sig", newline="") as source:
            for number, values in enumerate(islice(csv.DictReader(source), done, None), done + 1):
                yield Line(number, number, values)
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        yield Line(number + 1, number, {}, f"the file cannot be read further: {fault}")
