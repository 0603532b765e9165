"""The base of verifiers with a cache: each distinct request is judged once, and cached verdicts are not recomputed.

`submit` calls `prepare`; a verdict that it returns is passed on at once, a job is looked up in memory and on disk,
joined to an equal job in flight, or started: on this machine, or with `verifier.pool=ray` on some node of a cluster. A verifier
defines in `prepare` the content that decides its verdict and in `start` the way to it; it never sees the cache.
"""

import sys
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.cache import Cache, key_of
from rlvr_exp.verifiers.futures import completed_future, then
from rlvr_exp.verifiers.ray_pool import RayPool

BUCKET_OF_END = {
    "cpu": "timeout",
    "wall": "timeout",
    "memory": "memory",
    "output": "output_limit",
    "lost": "runtime_error",
}
"""The bucket of a candidate that the sandbox ended."""
LOG_CHARACTERS = 4000
"""Limit of a verdict's log, which may quote a candidate's output."""


@dataclass(frozen=True)
class VerificationJob:
    """A request that has to be judged. `content`: every byte that decides the verdict besides the verifier's name,
    version and tools: candidate, problem, limits, options. `payload`: whatever `start` needs; `request`: its source."""

    content: bytes
    payload: Any
    request: Request


@dataclass(frozen=True)
class Judgement:
    """A verdict and whether it may be cached: a verdict that may depend on the machine's load may not, and `no_verdict`
    never is."""

    verdict: Verdict
    cacheable: bool = True


class CachedVerifier(Verifier):
    """A verifier that caches its verdicts. Thread-safe.

    Args:
        cache: the store of verdicts; None: in memory.
        sandbox: its node; needed by `verifier.pool=ray` alone.
        given: the options of the schema that a subclass derives from as well.
    """

    runs_candidates = True
    """Candidates are executed, not only read: files that they could write to are not trusted."""
    pool, address = "local", ""
    """Those of a schema without `Pooled`."""

    def __init__(self, cache: options.Cache | None = None, sandbox: options.Sandbox | None = None, **given: Any):
        super().__init__(**given)
        self._cache, self._sandbox = Cache(cache), sandbox or options.Sandbox()
        self._nodes: RayPool | None = None
        self._lock = threading.Lock()
        self._in_flight: dict[bytes, Future[Verdict]] = {}
        self._counts: Counter[str] = Counter()
        self._salt: bytes | None = None
        self._closed = False

    @abstractmethod
    def prepare(self, request: Request) -> Verdict | VerificationJob:
        """A verdict that needs no judging (nothing to judge, a guard's rejection), or the job. Never raises for the
        content of a candidate or a problem."""

    @abstractmethod
    def start(self, work: VerificationJob) -> Future[Judgement]:
        """Begin judging. The future never raises for an act of a candidate."""

    def submit(self, request: Request) -> Future[Verdict]:
        """Submit one request. It cannot be cancelled: other callers may wait for its verdict too.

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

    def judge_uncached(self, request: Request) -> Future[Verdict]:
        """The verdict of a new run: no cache is looked up or written."""
        prepared = self.prepare(request)
        if isinstance(prepared, Verdict):
            return completed_future(_capped(prepared))
        return then(self._judging(prepared), lambda judgement: _capped(judgement.verdict))

    def judgement(self, request: Request) -> Future[Judgement]:
        """The judgement of a new run on this machine. Called on the nodes of a cluster."""
        prepared = self.prepare(request)
        return completed_future(Judgement(prepared)) if isinstance(prepared, Verdict) else self.start(prepared)

    def identity(self) -> Mapping[str, Any]:
        """All that decides verdicts besides the content, the interpreter and the isolation included: a candidate that passed when
        it could see more may not pass when it sees less."""
        tools, level = sorted(self.tool().items()), self.isolation().get("level")
        return {"verifier": self.name, "version": self.version, "tools": tools, "level": level, "python": sys.version}

    def ray_pool(self) -> RayPool | None:
        """The judges of a cluster, started by the first call; None if this machine judges.

        Raises:
            InputError: no node can judge as this machine does.
        """
        if self.pool == "ray" and self._nodes is None:
            with self._lock:
                if self._nodes is None and not self._closed:
                    own = {one.name: getattr(self, one.name) for one in fields(self)} | {"pool": "local", "address": ""}
                    self._nodes = RayPool(self, self._sandbox, own, self.address)
        return self._nodes

    def nodes(self) -> list[str]:
        pool = self.ray_pool()
        return [] if pool is None else pool.nodes()

    def metrics(self) -> Mapping[str, float]:
        """Counts of requests, settled (without judging), joined, judged; and the cache's hits."""
        with self._lock:
            counts = {name: float(self._counts[name]) for name in ("requests", "settled", "joined", "judged")}
        return counts | {f"cache_{name}": value for name, value in self._cache.metrics().items()}

    def close(self) -> None:
        """No further requests; pending requests end with an error. Workers end before this is called."""
        with self._lock:
            self._closed = True
            left, self._in_flight = list(self._in_flight.values()), {}
        if self._nodes is not None:
            self._nodes.close()
        for answer in left:
            answer.set_exception(RuntimeError(f"verifier {self.name} was closed before this verdict"))
        self._cache.close()

    def _enter(self, key: bytes) -> tuple[Future[Verdict], bool]:
        """The future to wait for, and whether the caller has to start the job."""
        with self._lock:
            if self._closed:
                raise ValueError(f"verifier {self.name} is closed")
            running = self._in_flight.get(key)
            if running is not None:
                self._counts["joined"] += 1
            elif (known := self._cache.peek(key)) is not None:  # cached since the first lookup
                return completed_future(known), False
            else:
                answer = self._in_flight[key] = _running()
                self._counts["judged"] += 1
                return answer, True
        # Outside the lock: if the running future is done, the copy completes at once.
        return _copied(running), False

    def _begin(self, key: bytes, work: VerificationJob) -> None:
        try:
            judging = self._judging(work)
        except BaseException as fault:
            judging = Future()
            judging.set_exception(fault)
            self._finish(key, judging)
            raise
        judging.add_done_callback(lambda done: self._finish(key, done))

    def _judging(self, work: VerificationJob) -> Future[Judgement]:
        if (pool := self.ray_pool()) is None:
            return self.start(work)
        return pool.submit("judgement", work.request, lost=lambda why: Judgement(Verdict("no_verdict", log=why), False))

    def _finish(self, key: bytes, done: Future[Judgement]) -> None:
        verdict = fault = None
        try:
            judgement = done.result()
            verdict = _capped(judgement.verdict)
            # It is cached before its job leaves the table: a request in between finds it in one of the two.
            if judgement.cacheable and verdict.outcome != "no_verdict":
                self._cache.put(key, replace(verdict, cached=True))  # Stored as hits return it: hits are many.
        except BaseException as raised:  # Passed to whoever waits: raised here, nobody would see it.
            fault = raised
        with self._lock:
            answer = self._in_flight.pop(key, None)
        if answer is None:  # `close` has completed the future.
            return
        if verdict is None:
            answer.set_exception(fault)
        else:
            answer.set_result(verdict)

    def _known_by(self) -> bytes:
        if self._salt is None:
            held = self.isolation()
            if self.runs_candidates and "files_read_only" in held.get("not_isolated", ()):
                self._cache.leave_disk("candidates are not kept from the user's files, so they could write verdicts")
            self._salt = repr(tuple(self.identity().values())).encode()
        return self._salt

    def _count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by


def _capped(verdict: Verdict) -> Verdict:
    """With a log that is not too long and can be written: a candidate may raise half of a character."""
    log = verdict.log.encode("utf-8", "backslashreplace").decode()
    half = LOG_CHARACTERS // 2
    if len(log) > LOG_CHARACTERS:
        log = f"{log[:half]}\n[...]\n{log[-half:]}"
    return verdict if log == verdict.log else replace(verdict, log=log)


def _running() -> Future[Verdict]:
    """A future that cannot be cancelled."""
    future: Future[Verdict] = Future()
    future.set_running_or_notify_cancel()
    return future


def _copied(running: Future[Verdict]) -> Future[Verdict]:
    """A future of the same verdict for another request, marked as cached."""
    copy = _running()

    def pass_on(done: Future[Verdict]) -> None:
        fault = done.exception()
        if fault is not None:
            copy.set_exception(fault)
        else:
            copy.set_result(replace(done.result(), cached=True))

    running.add_done_callback(pass_on)
    return copy
