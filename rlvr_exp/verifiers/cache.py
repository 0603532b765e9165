"""Verdicts by content: a cache in memory in front of one file on disk that all runs of a user share.

Owns the verdicts cached in this process, and the counting of hits; rlvr_exp.verifiers.store owns the file. Losing any
of it costs time, never correctness: every verdict in it can be recomputed. Never decides what may be cached.
"""

import hashlib
import os
import threading
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Mapping
from pathlib import Path

from rlvr_exp.config import verifier as node
from rlvr_exp.core.files import cache_home
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.store import Store

_MEMORY_SLOTS = 50_000
"""Verdicts kept in memory; about 1 KB each."""


def key_of(known_by: bytes, content: bytes) -> bytes:
    """`known_by`: the verifier's name, version and tools; `content`: all else that decides the verdict."""
    return hashlib.blake2b(content, key=hashlib.blake2b(known_by).digest(), digest_size=20).digest()


def default_folder() -> Path:
    """`verdicts` in the user's cache folder of rlvr_exp."""
    return cache_home() / "verdicts"


class Cache:
    """Thread-safe. In a fork of its process it uses the memory alone: a database must not cross a fork.

    Args:
        options: the `cache` node; None or `enabled=False`: the memory alone.
    """

    def __init__(self, options: node.Cache | None = None):
        self._memory: OrderedDict[bytes, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._store: Store | None = None
        if options is not None and options.enabled:
            folder = Path(options.path).expanduser() if options.path else default_folder()
            self._store = Store(folder, options.max_mb)
        _LIVING.add(self)

    def get(self, key: bytes) -> Verdict | None:
        """The verdict in memory or on disk; counted as a hit or a miss."""
        verdict, source = self.peek(key), "hits_memory"
        if verdict is None and self._store is not None:
            verdict, source = self._store.get(key), "hits_disk"
            if verdict is not None:
                self._remember(key, verdict)
        with self._lock:
            self._counts["misses" if verdict is None else source] += 1
        return verdict

    def peek(self, key: bytes) -> Verdict | None:
        """The verdict in memory; not counted, and never touches the disk."""
        with self._lock:
            verdict = self._memory.get(key)
            if verdict is not None:
                self._memory.move_to_end(key)
            return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict; it is written to disk in the background. Never raises for what a disk does."""
        self._remember(key, verdict)
        if self._store is not None:
            self._store.put(key, verdict)

    def metrics(self) -> Mapping[str, float]:
        """hits_memory, hits_disk, misses, and hit_rate after the first request."""
        with self._lock:
            counts = {name: float(self._counts[name]) for name in ("hits_memory", "hits_disk", "misses")}
        requests = sum(counts.values())
        return counts | ({"hit_rate": 1 - counts["misses"] / requests} if requests else {})

    def leave_disk(self, reason: str) -> None:
        """Use the memory alone from now on, with a warning that gives the reason."""
        if self._store is not None:
            self.close()
            warnings.warn(f"verdicts are not remembered on disk: {reason}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        """Write what is pending. The memory can still be read."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _remember(self, key: bytes, verdict: Verdict) -> None:
        with self._lock:
            self._memory[key] = verdict
            self._memory.move_to_end(key)
            while len(self._memory) > _MEMORY_SLOTS:
                self._memory.popitem(last=False)

    def _forked(self) -> None:
        self._lock = threading.Lock()
        if self._store is not None:
            _LEFT_BEHIND.append(self._store)
            self._store = None


_LIVING: weakref.WeakSet[Cache] = weakref.WeakSet()
_LEFT_BEHIND: list[Store] = []
"""Stores of the parent, seen from a fork: kept open, since closing a store there would disturb the parent's file."""


def _after_fork() -> None:
    for cache in list(_LIVING):
        cache._forked()


os.register_at_fork(after_in_child=_after_fork)
