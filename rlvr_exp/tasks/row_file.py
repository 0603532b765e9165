"""A file of rows as a stream of lines: plain or gzip, of any size, in bounded memory. Knows no row's format."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rlvr_exp.core.errors import InputError, InputProblem

_GZIP, _CHUNK, _BOM = b"\x1f\x8b", 1 << 20, b"\xef\xbb\xbf"


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
    """None where it is longer than allowed."""


def fingerprint(path: Path) -> Fingerprint:
    """Reads the file once. Raises InputError where it cannot be read to its end."""
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
def opened(path: Path, option: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The file's content, unpacked. Raises InputError for what goes wrong with the file while it is read."""
    try:
        with open(path, "rb") as plain:
            packed = plain.read(2) == _GZIP
            plain.seek(0)
            if not packed:
                yield plain
                return
            with gzip.GzipFile(fileobj=plain) as unpacked:
                yield unpacked
    except (OSError, EOFError, zlib.error) as fault:
        remedy = "give a complete and readable file"
        raise InputError(InputProblem(option, f"cannot be read: {fault}", str(path), "", "", remedy)) from fault
