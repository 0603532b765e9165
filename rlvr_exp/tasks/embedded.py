"""The manifest of an embedded corpus: what it tells of a split without reading its tasks."""

import hashlib
import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlvr_exp.tasks.tables import SPLITS


def embedded_sizes(corpus: Path, limit: int, each: int = 1) -> dict[str, int]:
    """Tasks of every split. `limit`: the most of a split, 0 for all; `each`: tasks of one row."""
    rows = {name: part["tasks"] if "tasks" in part else part["rows"] for name, part in _splits(corpus).items()}
    return {name: min(each * rows[name], limit or sys.maxsize) for name in SPLITS if name in rows}


@lru_cache
def _splits(corpus: Path) -> dict[str, dict[str, Any]]:
    return json.loads(corpus.with_name(f"{corpus.name}.manifest.json").read_bytes())["splits"]


@lru_cache
def embedded_content(corpus: Path, split: str) -> str | None:
    """The hash of a split's rows, from `CORPUS.manifest.json` next to the folder; None where its file differs from the
    manifest's."""
    recorded = _splits(corpus).get(split)
    file = corpus / f"{split}.jsonl.xz"
    if recorded is None or not file.is_file():
        return None
    return (
        recorded["content_sha256"] if hashlib.sha256(file.read_bytes()).hexdigest() == recorded["file_sha256"] else None
    )
