"""Checksums are remembered exactly as long as the file is unchanged."""

import hashlib
import os
from pathlib import Path

import pytest

from rlvr_exp.core import hashing

WHOLE = hashlib.file_digest


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each file that is read; nothing is remembered yet."""
    files: list[int] = []
    monkeypatch.setattr(hashing, "_known", {})
    monkeypatch.setattr(hashing.hashlib, "file_digest", lambda *args: (files.append(1), WHOLE(*args))[1])
    return files


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose last change counts as old enough."""
    (tmp_path / "weights").write_bytes(b"weights")
    monkeypatch.setattr(hashing, "SETTLED_NS", -1_000_000_000)
    return tmp_path / "weights"


def test_a_file_that_stayed_is_read_once_and_one_that_is_fresh_each_time(
    file: Path, read: list[int], monkeypatch
) -> None:
    sums = {hashing.checksum(file) for _ in range(3)}
    assert sums == {hashlib.sha256(b"weights").hexdigest()} and len(read) == 1
    monkeypatch.undo()
    fresh = file.with_name("fresh")
    fresh.write_bytes(b"fresh")
    hashing.checksum(fresh)
    assert not [state for state in hashing._known if state[1] == fresh.stat().st_ino]


def rewritten(path: Path, content: bytes) -> None:
    """Change it in place, with the same size and the old time."""
    then = path.stat()
    with open(path, "r+b") as out:
        out.write(content)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))


def exchanged(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    os.replace(other, path)


@pytest.mark.parametrize("change", [rewritten, exchanged])
def test_a_change_is_seen_that_size_and_time_do_not_show(file: Path, read: list[int], change, monkeypatch) -> None:
    old = os.stat(file).st_ctime_ns
    hashing.checksum(file)
    while True:  # The file system's clock is coarse.
        change(file, b"WEIGHTS")
        if os.stat(file).st_ctime_ns != old:
            break
    assert hashing.checksum(file) == hashlib.sha256(b"WEIGHTS").hexdigest()


def test_a_child_takes_over_what_its_parent_read(file: Path, read: list[int], tmp_path: Path, monkeypatch) -> None:
    hashing.take_over(tmp_path)
    known = hashing.checksum(file)
    hashing.hand_over(tmp_path)
    monkeypatch.setattr(hashing, "_known", {})
    hashing.take_over(tmp_path)
    assert hashing.checksum(file) == known and len(read) == 1
    exchanged(file, b"WEIGHTS")
    assert hashing.checksum(file) != known
    hashing.drop(tmp_path)
    assert not list(tmp_path.glob(f"{hashing.HANDED}*"))
