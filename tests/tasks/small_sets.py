"""Small data of every domain: rows of the project's own corpora, and coding problems with doubles."""

import json
import lzma
from itertools import islice
from pathlib import Path

LIMIT = 40
"""Rows of a split."""


def own_rows(folder: Path) -> str:
    """Programs of which each has a double under another id and with other names."""
    rows = [
        {
            "id": f"{name}{n}",
            "prompt": f"Write f{n} number {n}, {name}.",
            "solution": f"def f{n}({name}):\n    {name} = {name} + {n}\n    return {name} * {n}\n",
            "tests": f"from solution import f{n}\n\ndef test_{name}():\n    assert f{n}(1) == {n + 1} * {n}\n",
        }
        for n in range(12)
        for name in "xy"
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


def first_of(corpus: Path, folder: Path) -> str:
    """The first rows of an embedded corpus, with the splits of their files."""
    for split in ("train", "practice", "test", "dev"):
        if not (packed := corpus / f"{split}.jsonl.xz").is_file():
            continue
        with lzma.open(packed, "rt") as lines:
            (folder / f"{split}.jsonl").write_text("".join(islice(lines, LIMIT)))
    return str(folder)
