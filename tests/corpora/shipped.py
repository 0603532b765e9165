"""An embedded corpus as shipped: the rows of its splits, and the manifest beside them."""

import hashlib
import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any


def fingerprint(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Shipped:
    def __init__(self, folder: Path):
        self._folder = folder
        self.content, self.rows, self.manifest = cache(self._content), cache(self._rows), cache(self._manifest)

    def _content(self, split: str) -> bytes:
        return lzma.decompress((self._folder / f"{split}.jsonl.xz").read_bytes())

    def _rows(self, split: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.content(split).splitlines()]

    def _manifest(self) -> dict[str, Any]:
        return json.loads(self._folder.with_suffix(".manifest.json").read_text())

    def splits(self) -> dict[str, Any]:
        """What the manifest records of each split."""
        return self.manifest()["splits"]

    def check(self, split: str, count: int) -> None:
        """The split's file, rows and number are those of the manifest."""
        packed, recorded = (self._folder / f"{split}.jsonl.xz").read_bytes(), self.splits()[split]
        assert fingerprint(packed) == recorded["file_sha256"]
        assert fingerprint(self.content(split)) == recorded["content_sha256"]
        assert len(self.rows(split)) == recorded["rows"] == count
