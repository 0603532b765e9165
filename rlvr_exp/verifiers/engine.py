"""What every verifier of ours shares: each distinct request is judged once, and what is known is not judged again.

`submit` asks `prepare` what the request comes to; a settled verdict is returned at once, work is looked up in the
memory and on disk, joined to equal work in flight, or started. A verifier says in `prepare` what decides its verdict
and in `start` how it is reached; it never sees the cache.
"""

import sys
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.verifiers.base import Request, Verdict, Verifier, completed_future
from rlvr_exp.verifiers.cache import Cache, CacheOptions, key_of

LOG_CHARACTERS = 4000
"""Of a verdict's log: it may quote what a candidate printed."""


@dataclass(frozen=True)
class VerificationJob:
    """A request that has to be judged. `content`: every byte that decides the verdict beside the verifier's name,
    version and tools: candidate, problem, limits, options. `payload`: whatever `start` needs; `request` as asked."""

    content: bytes
    payload: Any
    request: Request


@dataclass(frozen=True)
class Judgement:
    """A verdict and whether it may be remembered: one that may have been the machine's mood may not, and `no_verdict`
    never is."""

    verdict: Verdict
    cacheable: bool = True


class CachedVerifier(Verifier):
    """A verifier with a memory. Thread-safe."""

    runs_candidates = True
    """Candidates are executed, not only read: what they could write to is not trusted."""

    def __init__(self, cache: CacheOptions | None = None):
        self._cache = Cache(cache)
        self._lock = threading.Lock()
        self._in_flight: dict[bytes, Future[Verdict]] = {}
        self._counts: Counter[str] = Counter()
        self._salt: bytes | None = None
        self._closed = False

    @abstractmethod
    def prepare(self, request: Request) -> Verdict | VerificationJob:
        """A verdict that needs no judging (nothing to judge, a guard's rejection), or the work. Never raises for what
        a candidate or a problem holds."""

    @abstractmethod
    def start(self, work: VerificationJob) -> Future[Judgement]:
        """Begin judging. The future never raises for what a candidate does."""

    def submit(self, request: Request) -> Future[Verdict]:
        """Ask for one verdict. It cannot be cancelled: others may wait for it too.

        Raises:
            ValueError: the verifier is closed.
        """
        self._count("requests")
        prepared = self.prepare(request)
        if isinstance(prepared, Verdict):
            self._count("settled")
            return completed_future(_capped(prepared))
        key = key_of(self._known_by(), prepared.content)
        known = self._cache.get(key)  # Before the lock: it may read the disk.
        if known is not None:
            return completed_future(known)
        answer, first = self._enter(key)
        if first:
            self._begin(key, prepared)
        return answer

    def metrics(self) -> Mapping[str, float]:
        """requests, settled (without judging), joined, judged; and the cache's hits."""
        with self._lock:
            counts = {name: float(self._counts[name]) for name in ("requests", "settled", "joined", "judged")}
        return counts | {f"cache_{name}": value for name, value in self._cache.metrics().items()}

    def close(self) -> None:
        """No further requests; those without a verdict by now end with an error. Workers end before this is called."""
        with self._lock:
            self._closed = True
            left, self._in_flight = list(self._in_flight.values()), {}
        for answer in left:
            answer.set_exception(RuntimeError(f"verifier {self.name} was closed before this verdict"))
        self._cache.close()

    def _enter(self, key: bytes) -> tuple[Future[Verdict], bool]:
        """The answer to wait for, and whether the caller is to start the judging."""
        with self._lock:
            if self._closed:
                raise ValueError(f"verifier {self.name} is closed")
            running = self._in_flight.get(key)
            if running is not None:
                self._counts["joined"] += 1
            elif (known := self._cache.peek(key)) is not None:  # settled since the first look
                return completed_future(known), False
            else:
                answer = self._in_flight[key] = _running()
                self._counts["judged"] += 1
                return answer, True
        # Outside the lock: where it is done by now, the copy is made here and now.
        return _copied(running), False

    def _begin(self, key: bytes, work: VerificationJob) -> None:
        try:
            judging = self.start(work)
        except BaseException as fault:
            judging = Future()
            judging.set_exception(fault)
            self._finish(key, judging)
            raise
        judging.add_done_callback(lambda done: self._finish(key, done))

    def _finish(self, key: bytes, done: Future[Judgement]) -> None:
        verdict = fault = None
        try:
            verdict = self._store(key, done.result())
        except BaseException as raised:  # Told to whoever waits: this is called where nobody would see it.
            fault = raised
        with self._lock:
            answer = self._in_flight.pop(key, None)
        if answer is None:  # `close` has answered.
            return
        if verdict is None:
            answer.set_exception(fault)
        else:
            answer.set_result(verdict)

    def _store(self, key: bytes, judgement: Judgement) -> Verdict:
        """The verdict as it is told. The cache knows it before it leaves the table: whoever asks between finds it in
        one of the two."""
        verdict = _capped(judgement.verdict)
        if judgement.cacheable and verdict.outcome != "no_verdict":
            self._cache.put(key, replace(verdict, cached=True))  # As it will be told: hits are many.
        return verdict

    def _known_by(self) -> bytes:
        """What every verdict of this verifier depends on, the interpreter and the isolation included: what passed where
        candidates could see more is not known to pass where they cannot."""
        if self._salt is None:
            held = self.isolation()
            if self.runs_candidates and "files_read_only" in held.get("not_isolated", ()):
                self._cache.leave_disk("candidates are not kept from the user's files, so they could write verdicts")
            parts = (self.name, self.version, sorted(self.tool().items()), held.get("level"), sys.version)
            self._salt = repr(parts).encode()
        return self._salt

    def _count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by


def _capped(verdict: Verdict) -> Verdict:
    if len(verdict.log) <= LOG_CHARACTERS:
        return verdict
    half = LOG_CHARACTERS // 2
    return replace(verdict, log=f"{verdict.log[:half]}\n[...]\n{verdict.log[-half:]}")


def _running() -> Future[Verdict]:
    """A future that cannot be cancelled."""
    future: Future[Verdict] = Future()
    future.set_running_or_notify_cancel()
    return future


def _copied(running: Future[Verdict]) -> Future[Verdict]:
    """The same verdict for another asker, marked as not judged for it."""
    copy = _running()

    def pass_on(done: Future[Verdict]) -> None:
        fault = done.exception()
        if fault is not None:
            copy.set_exception(fault)
        else:
            copy.set_result(replace(done.result(), cached=True))

    running.add_done_callback(pass_on)
    return copy
