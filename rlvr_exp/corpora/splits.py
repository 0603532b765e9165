"""The files of an embedded corpus: each split compressed, and a manifest of counts and fingerprints beside them."""

import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.core import files

Row = dict[str, Any]


def sizes(options: Any, wanted: Mapping[str, int]) -> dict[str, int]:
    """Rows of each split, at most those that the maker's options allow."""
    return {name: min(size, options.rows or size) for name, size in wanted.items()}


def text_of(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def fingerprint(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(
    folder: Path,
    splits: Mapping[str, Sequence[Row]],
    counts: Callable[[Sequence[Row]], Mapping[str, Any]],
    preset: int,
    seed: int,
) -> tuple[str, dict[str, int]]:
    """Write each split and the manifest; returns a report and the rows of each split.

    The manifest is next to the folder and not in it, where every file is a split. The content's fingerprint outlives a
    change of the compressor's version.
    """
    manifest = {}
    for split, rows in splits.items():
        text = text_of(rows).encode()
        packed = lzma.compress(text, preset=preset)
        with files.replacing(folder / f"{split}.jsonl.xz") as temporary:
            temporary.write_bytes(packed)
        manifest[split] = {"file_sha256": fingerprint(packed), "content_sha256": fingerprint(text), **counts(rows)}
    files.write_json(folder.with_suffix(".manifest.json"), {"seed": seed, "splits": manifest})
    found = {f"rows/{split}": len(rows) for split, rows in splits.items()}
    return "\n".join([f"written: {folder}", *(f"{name}: {count}" for name, count in found.items())]), found


def tally(rows: Sequence[Row], key: str) -> dict[str, int]:
    """How many rows have each value of a key."""
    return dict(sorted(Counter(row[key] for row in rows).items()))
