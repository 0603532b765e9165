"""Hashes of values and of files.

`content_hash` has one canonical form, so that equal content has an equal name in caches and manifests.

`checksum` reads each file once: a process remembers the sums, and a child takes over those of its parent. A checkpoint of 28 GB
takes a minute to read, and a run needs its sums in its parent, in every rank and when weights are restored. A sum is remembered
under everything by which a file system identifies a file's state (device, inode, size, times of content and inode), and only for
files that have not changed for longer than the resolution of these times. Nothing is remembered from one run to the next.
"""

import dataclasses
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

from rlvr_exp.core.files import write_json


def content_hash(value: Any) -> str:
    """32 hexadecimal digits of a value made of JSON types, tuples, dataclasses and bytes.

    Raises:
        TypeError: the value holds something without a canonical form.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise TypeError(f"content_hash: no canonical form for {type(value).__name__}")


HANDED = ".checked.json"
"""In a run's directory while its children live."""
SETTLED_NS = 2_000_000_000
"""A file changed more recently may change a second time under the same timestamp."""
State = tuple[int, ...]
_known: dict[State, str] = {}


def checksum(path: Path) -> str:
    """64 hexadecimal digits."""
    now = time.time_ns()
    with open(path, "rb") as file:
        state = _state(file)
        if state in _known:
            return _known[state]
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if _state(file) == state and now - state[-1] > SETTLED_NS:
            _known[state] = found
    return found


def hand_over(directory: Path) -> None:
    """Write the remembered sums, for the children of the run in this directory."""
    write_json(directory / HANDED, [[list(state), value] for state, value in _known.items()])


def take_over(directory: Path) -> None:
    """Load the parent's sums, if it wrote any. A file that has changed since is read a second time."""
    path = directory / HANDED
    if path.is_file():
        _known.update({tuple(state): value for state, value in json.loads(path.read_text(encoding="utf-8"))})


def drop(directory: Path) -> None:
    """Remove the file of `hand_over`."""
    (directory / HANDED).unlink(missing_ok=True)


def _state(file: BinaryIO) -> State:
    stat = os.fstat(file.fileno())
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
