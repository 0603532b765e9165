"""What every verifier of ours shares: each distinct request is judged once, and what is known is not judged again.

`submit` asks `prepare` what the request comes to; a settled verdict is returned at once, work is looked up in the
memory and on disk, joined to equal work in flight, or started. A verifier says in `prepare` what decides its verdict
and in `start` how it is reached; it never sees the cache.
"""

import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.cache import Cache, CacheOptions, key_of


@dataclass(frozen=True)
class Work:
    """A request that has to be judged. `content`: every byte that decides the verdict beside the verifier's name,
    version and tools: candidate, problem, limits, options. `payload`: whatever `start` needs; `request` as asked."""

    content: bytes
    payload: Any
    request: Request


@dataclass(frozen=True)
class Judged:
    """A verdict and whether it may be remembered: one that may have been the machine's mood may not."""

    verdict: Verdict
    lasting: bool = True


class Engine(Verifier):
    """A verifier with a memory."""

    def __init__(self, cache: CacheOptions | None = None):
        self._cache = Cache(cache)
        self._lock = threading.Lock()
        self._in_flight: dict[bytes, Future[Verdict]] = {}
        self._counts: Counter[str] = Counter()
        self._salt: bytes | None = None

    @abstractmethod
    def prepare(self, request: Request) -> Verdict | Work:
        """A verdict that needs no judging (nothing to judge, a guard's rejection), or the work. Never raises for what
        a candidate or a problem holds."""

    @abstractmethod
    def start(self, work: Work) -> Future[Judged]:
        """Begin judging. The future never raises for what a candidate does."""

    def submit(self, request: Request) -> Future[Verdict]:
        self._counts["requests"] += 1
        prepared = self.prepare(request)
        if isinstance(prepared, Verdict):
            return _done(prepared)
        key = key_of(self._known_by(), prepared.content)
        known = self._cache.get(key)
        if known is not None:
            return _done(replace(known, cached=True))
        with self._lock:
            running = self._in_flight.get(key)
            if running is None and (known := self._cache.get(key)) is not None:  # settled since the first look
                return _done(replace(known, cached=True))
            if running is not None:
                self._counts["joined"] += 1
                return _copied(running)
            answer: Future[Verdict] = Future()
            self._in_flight[key] = answer
        self._counts["judged"] += 1
        try:
            judging = self.start(prepared)
        except BaseException as fault:
            self._settle(key, answer, fault)
            raise
        judging.add_done_callback(lambda done: self._settle(key, answer, done))
        return answer

    def metrics(self) -> Mapping[str, float]:
        return {**self._counts, **self._cache.metrics()}

    def close(self) -> None:
        self._cache.close()

    def _known_by(self) -> bytes:
        if self._salt is None:
            self._salt = repr((self.name, self.version, sorted(self.tool().items()))).encode()
        return self._salt

    def _settle(self, key: bytes, answer: Future[Verdict], done: Future[Judged] | BaseException) -> None:
        fault = done if isinstance(done, BaseException) else done.exception()
        judged = None if fault is not None else done.result()
        if judged is not None and judged.lasting:
            self._cache.put(key, judged.verdict)
        with self._lock:
            del self._in_flight[key]
        if judged is None:
            answer.set_exception(fault)
        else:
            answer.set_result(judged.verdict)


def _done(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future


def _copied(running: Future[Verdict]) -> Future[Verdict]:
    """The same verdict for another asker, marked as not judged for it."""
    copy: Future[Verdict] = Future()

    def pass_on(done: Future[Verdict]) -> None:
        fault = done.exception()
        if fault is not None:
            copy.set_exception(fault)
        else:
            copy.set_result(replace(done.result(), cached=True))

    running.add_done_callback(pass_on)
    return copy
