"""The pool: runs jobs on workers, in parallel, from one thread of the trusted parent.

Owns the workers' lives: started lazily, replaced when they die, ended by `close` or with the parent. A job that brings
its worker down runs again alone in a fresh one; one that fell to the wall clock alone runs again with twice the time.
The pool never looks into payloads or records: what runs is the harness module named at construction, what it means is
the verifier's business.
"""

import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.sandbox.isolate import LEVELS
from rlvr_exp.sandbox.jobs import Job, JobResult
from rlvr_exp.sandbox.link import Link, Unavailable

_GRACE_S = 10.0
"""A worker that has not answered this long after a job's wall limit is itself at fault."""
_PACKAGE = str(Path(__file__).resolve().parents[1])


class Pool:
    """Workers that run candidates of one harness.

    Args:
        workers: how many candidates run at once; 0 means one a core: the trainer waits while they judge.
        harness: importable module with `run(payload, send)`, called in each candidate's fork.
        hidden: folders that candidates see empty, where the level allows it; the package's own by default.
        processes: how many processes a candidate may start beside its own.
        levels: the isolation levels to try, strongest first.
    """

    def __init__(
        self,
        workers: int = 0,
        harness: str = "rlvr_exp.sandbox.calls",
        hidden: Sequence[str] = (_PACKAGE,),
        processes: int = 0,
        levels: Sequence[str] = LEVELS,
    ):
        if workers < 0:
            remedy = "give a positive number, or 0 for one a core"
            raise InputError(Problem("sandbox.workers", "cannot be negative", got=str(workers), remedy=remedy))
        self.size = workers or len(os.sched_getaffinity(0))
        self._harness, self._hidden, self._processes = harness, list(hidden), processes
        self._levels = tuple(levels)
        self.links: list[Link] = []
        self._level: str | None = None
        self._lock = threading.Lock()
        self._closed = False

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run all; results in the jobs' order. Never raises for what a candidate does."""
        with self._lock:
            if self._closed:
                raise ValueError("the pool is closed")
            return _Batch(self, jobs).run()

    def isolation(self) -> dict[str, Any]:
        """For the manifest: the level reached, what is isolated and what is not. Starts a worker if none is there."""
        with self._lock:
            try:
                link = self.links[0] if self.links else self.start()
            except Unavailable as fault:
                return {"level": "none", "isolated": [], "not_isolated": [], "fault": str(fault)}
            facts = link.facts["isolated"]
            held = [name for name, holds in sorted(facts.items()) if holds]
            return {"level": link.facts["level"], "isolated": held, "not_isolated": sorted(set(facts) - set(held))}

    def close(self) -> None:
        """End the workers and whatever they run."""
        with self._lock:
            self._closed = True
            for link in self.links:
                link.close()
            self.links.clear()

    def pids(self) -> list[int]:
        """The workers' supervisors; for tests and the manifest."""
        return [link.pid for link in self.links]

    def start(self) -> Link:
        """A fresh worker at the strongest level to be had; the level found first is kept. Raises Unavailable."""
        faults = []
        for level in (self._level,) if self._level else self._levels:
            try:
                link = Link(self._harness, level, self._hidden, self._processes)
            except Unavailable as fault:
                faults.append(str(fault))
                continue
            self._level = level
            self.links.append(link)
            return link
        raise Unavailable("; ".join(faults))

    def retire(self, link: Link) -> None:
        """End a worker for good."""
        link.close()
        self.links.remove(link)


class _Batch:
    """One call of `Pool.run`: which job is where, and what is still to do."""

    def __init__(self, pool: Pool, jobs: Sequence[Job]):
        self._pool = pool
        self._jobs = list(jobs)
        self._results: list[JobResult | None] = [None] * len(jobs)
        self._tries = [0] * len(jobs)
        self._waiting = deque(range(len(jobs)))
        self._suspects: deque[int] = deque()
        self._lost_once: set[int] = set()
        self._slow_once: set[int] = set()
        self._running: dict[Link, tuple[int, float]] = {}
        self._selector = selectors.DefaultSelector()

    def run(self) -> list[JobResult]:
        try:
            while self._waiting or self._running or self._suspects:
                try:
                    self._hand_out()
                except Unavailable as fault:
                    self._give_up(str(fault))
                self._collect()
        finally:
            # After an interrupt an answer is still on its way: such a worker cannot take another job.
            for link in list(self._running):
                self._pool.retire(link)
            self._selector.close()
        return [result for result in self._results if result is not None]

    def _hand_out(self) -> None:
        idle = [link for link in self._pool.links if link not in self._running]
        while self._waiting and len(self._running) < self._pool.size:
            link = idle.pop() if idle else self._pool.start()
            self._send(link, self._waiting.popleft())
        if self._suspects and not self._waiting and not self._running:
            if len(self._pool.links) >= self._pool.size:
                self._pool.retire(self._pool.links[0])
            link = self._pool.start()
            self._send(link, self._suspects.popleft())

    def _give_up(self, reason: str) -> None:
        """No worker can be started. What still runs may free one; without any, the rest has no verdict."""
        if self._running:
            return
        for index in (*self._waiting, *self._suspects):
            self._results[index] = JobResult("unavailable", log=reason.encode(), tries=self._tries[index])
        self._waiting.clear()
        self._suspects.clear()

    def _send(self, link: Link, index: int) -> None:
        job = self._jobs[index]
        self._tries[index] += 1
        link.send(job)
        self._running[link] = (index, time.monotonic() + job.limits.wall_s + _GRACE_S)
        self._selector.register(link.answers, selectors.EVENT_READ, link)
        if link.wants_to_write:
            self._selector.register(link.requests, selectors.EVENT_WRITE, link)

    def _collect(self) -> None:
        if not self._running:
            return
        patience = min(deadline for _, deadline in self._running.values()) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, patience)):
            if key.data in self._running:
                self._serve(key.data, key.fd)
        now = time.monotonic()
        for link in [link for link, (_, deadline) in self._running.items() if deadline < now]:
            self._lose(link)

    def _serve(self, link: Link, fd: int) -> None:
        if fd == link.requests:
            link.pump()
            if not link.wants_to_write:
                self._selector.unregister(fd)
            return
        result = link.receive()
        if result is not None:
            self._finish(link, result)
        elif link.broken:
            self._lose(link)

    def _release(self, link: Link) -> int:
        index, _ = self._running.pop(link)
        self._selector.unregister(link.answers)
        if link.requests in self._selector.get_map():
            self._selector.unregister(link.requests)
        return index

    def _finish(self, link: Link, result: JobResult) -> None:
        index = self._release(link)
        if result.end == "wall" and index not in self._slow_once:
            self._slow_once.add(index)
            self._jobs[index] = replace(self._jobs[index], limits=self._jobs[index].limits.doubled())
            self._waiting.append(index)
            return
        if result.end == "unavailable":
            self._again_alone(link, index, result)
        else:
            self._results[index] = replace(result, tries=self._tries[index])

    def _lose(self, link: Link) -> None:
        """The worker died or went silent under this job; where a fresh one does so, too, it is the job's fault."""
        self._again_alone(link, self._release(link), JobResult("lost"))

    def _again_alone(self, link: Link, index: int, result: JobResult) -> None:
        self._pool.retire(link)
        if index in self._lost_once:
            self._results[index] = replace(result, tries=self._tries[index])
        else:
            self._lost_once.add(index)
            self._suspects.append(index)
