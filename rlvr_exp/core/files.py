"""Atomic files: a file under its final name is complete. It is written under a temporary name, then renamed."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOST_DIGITS = 100_000
"""Digits of an integer that files may hold, in place of Python's 4,300. To write one takes 0.1 s."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it is flushed to disk and renamed to the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def cache_home() -> Path:
    """The folder `rlvr_exp` in the user's cache folder. A relative XDG_CACHE_HOME is ignored, as its specification says."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "rlvr_exp"


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Strict JSON (no NaN), indented, keys in their given order."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_json_lines(path: Path, rows: Iterable[Any]) -> int:
    """Write every row as a line of strict ASCII JSON, or no file if one of them fails; return their number."""
    count = 0
    with replacing(path) as temporary, open(temporary, "w", encoding="ascii", newline="") as out:
        for row in rows:
            out.write(json.dumps(row, allow_nan=False) + "\n")
            count += 1
    return count


def json_of(path: Path) -> dict[str, Any] | None:
    """The object in a file; None if it cannot be read or holds none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None
