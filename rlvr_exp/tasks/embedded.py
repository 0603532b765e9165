"""The manifest of an embedded corpus: the hash of a split's file, in place of hashing its tasks."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path


@lru_cache
def embedded_content(corpus: Path, split: str) -> str | None:
    """The hash of a split's rows, from `CORPUS.manifest.json` next to the folder; None where its file differs from the
    manifest's."""
    recorded = json.loads(corpus.with_name(f"{corpus.name}.manifest.json").read_bytes())["splits"].get(split)
    file = corpus / f"{split}.jsonl.xz"
    if recorded is None or not file.is_file():
        return None
    return (
        recorded["content_sha256"] if hashlib.sha256(file.read_bytes()).hexdigest() == recorded["file_sha256"] else None
    )
