"""The pool: runs jobs on workers, in parallel, for any thread of the trusted parent.

Owns the workers' lives: started lazily, replaced when they die, ended by `close`, with the pool's last reference, with
the interpreter or with the process. The pool never looks into payloads or records: the harness module named at
construction runs, and the verifier knows what its records mean.

A thread of its own (`Dispatcher`) hands jobs to workers and takes their answers. A job whose worker died under it is
retried alone in a fresh worker; a job that reached its wall clock limit, perhaps on a busy machine, is retried with
twice the time. Jobs in the queue when a worker dies are taken by the others.
"""

import math
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.jobs import Job, JobQueue, JobResult, message
from rlvr_exp.sandbox.link import Event, IsolationRequest, Link, Unavailable, WorkerManager, WorkerProgram

if TYPE_CHECKING:  # The sandbox runs on a bare interpreter, without Hydra, which the schemas need.
    from rlvr_exp.config.verifier import Sandbox

_CGROUPS = Path("/sys/fs/cgroup")


def usable() -> int:
    """Cores by affinity and by the control group's quota, shared evenly by the ranks on this machine; at least 1."""
    cores = min(len(os.sched_getaffinity(0)), math.ceil(_quota(_CGROUPS)))
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores // max(1, int(ranks) if ranks.isdigit() else 1))


def _quota(root: Path) -> float:
    """Cores' worth of CPU time that the control group allows; a large number if it sets none."""
    places = [root, *(root / group.lstrip("/") for group in _groups())]
    return max(1.0, min((quota for place in places if (quota := _quota_of(place)) is not None), default=1e6))


def _quota_of(place: Path) -> float | None:
    try:
        quota, period = (place / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (place / "cpu.cfs_quota_us").read_text().strip()
            period = (place / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _groups() -> list[str]:
    """This process's group, and those above it, in both versions' layouts."""
    try:
        rows = [line.strip().split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    found = []
    for _, controllers, path in rows:
        base = "" if not controllers else "cpu" if "cpu" in controllers.split(",") else None
        if base is None:
            continue
        parts = [part for part in path.split("/") if part]
        found += ["/".join((base, *parts[: depth + 1])) for depth in range(len(parts))] + [base]
    return found


class Pool:
    """Workers that run candidates of one harness.

    Args:
        workers: how many candidates run at once; 0 means one a core that this process may use, shared by the ranks
            of the machine. A trainer should let its own threads wait meanwhile.
        harness: importable module with `run(payload, send)`, called in each candidate's fork; if jobs have peers,
            `run(payload, send, fd)` and `serve(peer, fd)`.
        packages: the installed packages, never the project, can be imported by the harness and by candidates.
        processes: how many processes a candidate may start besides its own.
        level: the isolation level, or "auto" for the strongest below strict.
        require: the weakest level accepted; empty: any.
    """

    def __init__(
        self,
        workers: int = 0,
        harness: str = "rlvr_exp.sandbox.harnesses.python.calls",
        packages: bool = False,
        processes: int = 0,
        level: str = "auto",
        require: str = "",
    ):
        if workers < 0:
            remedy = "give a positive number, or 0 for one a core"
            raise InputError(InputProblem("sandbox.workers", "cannot be negative", got=str(workers), remedy=remedy))
        self.size = workers or usable()
        self._owner = os.getpid()
        program, isolation = WorkerProgram(harness, packages, processes), IsolationRequest(level, require)
        self._dispatcher = Dispatcher(program, isolation, self.size)
        # Runs when the pool is forgotten, and before the interpreter ends.
        self._closing = weakref.finalize(self, _close, self._dispatcher, self._owner)

    @classmethod
    def of(cls, sandbox: "Sandbox", harness: str, packages: bool = False, processes: int = 0) -> "Pool":
        """A pool by the `sandbox` node. `JobLimits.of(sandbox)` are its candidates' limits."""
        return cls(sandbox.workers, harness, packages, processes, sandbox.level, sandbox.require)

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit one job, from any thread. The future never raises for an act of a candidate.

        It raises InputError if the required level is not available. It can be cancelled while its job is pending.
        Its callbacks run on the pool's own thread, and must not wait for other jobs.

        Raises:
            ValueError: the pool is closed, or a limit is out of all range.
        """
        self._check_owner()
        message(0, job)
        return self._dispatcher.submit(job)

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run all; results in the jobs' order. After an interrupt pending jobs are dropped."""
        self._check_waits()
        futures: list[Future[JobResult]] = []
        try:
            for job in jobs:
                futures.append(self.submit(job))
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def isolation(self) -> dict[str, Any]:
        """For the manifest: the level reached, its isolation and its gaps. Starts the first worker if needed.

        Raises:
            InputError: the required level is not available here.
            RuntimeError: called by a callback, which would wait for its own thread.
        """
        self._check_owner()
        self._check_waits()
        try:
            facts = self._dispatcher.facts()
        except Unavailable as fault:
            return {"level": "none", "isolated": [], "not_isolated": [], "fault": str(fault)}
        held = [name for name, holds in sorted(facts["isolated"].items()) if holds]
        return {"level": facts["level"], "isolated": held, "not_isolated": sorted(set(facts["isolated"]) - set(held))}

    def close(self) -> None:
        """End the workers and whatever they run. Jobs without a result are `unavailable`."""
        self._closing()

    def pids(self) -> list[int]:
        """The workers' supervisors; for tests and the manifest."""
        return [link.pid for link in list(self._dispatcher.links.values())]

    def _check_waits(self) -> None:
        if self._dispatcher.own_thread:
            raise RuntimeError("a callback waits for the pool that runs it: submit jobs and return, ask it elsewhere")

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError("this pool belongs to the process that this one was forked from: make another one here")


def _close(dispatcher: "Dispatcher", owner: int) -> None:
    if os.getpid() == owner:
        dispatcher.close()


_GRACE_S = 10.0
"""A worker that has not answered this long after a job's wall limit is itself at fault."""
_AHEAD, _AHEAD_S = (2, 16), 0.05
"""Queued jobs per worker, and about how long they take together: while the caller's threads are busy this thread runs
only every few dozen milliseconds. More would delay an interrupted caller until they are done."""
_PAUSE_S = 0.002
_PATIENCE_S, _FAILURES, _BACKOFF_S = 20.0, 3, (0.25, 4.0)
"""Without a worker jobs wait that long and for that many attempts to start one, with growing delays."""
_SETTLE_S = 1.0
"""After a worker's death: by then the others have reported the jobs that they took."""


@dataclass(eq=False)
class QueuedJob:
    """A pending job."""

    job: Job
    future: Future[JobResult]
    tries: int = 0
    slow_once: bool = False
    lost_once: bool = False


class Dispatcher:
    """Owns the links, the queue and every retry. `submit`, `facts` and `close` may be called from any thread, the rest
    only from its own."""

    def __init__(self, program: WorkerProgram, isolation: IsolationRequest, size: int):
        self._workers, self._size = WorkerManager(program, isolation), size
        self._queue = JobQueue()
        self.links: dict[int, Link] = {}
        self._lone: dict[Link, tuple[JobQueue, QueuedJob]] = {}
        self._arrived: deque[QueuedJob | Future[dict[str, Any]]] = deque()
        self._waiting: deque[QueuedJob] = deque()
        self._suspects: deque[QueuedJob] = deque()
        self._posted: dict[int, QueuedJob] = {}
        self._running: dict[Link, tuple[QueuedJob, float]] = {}
        self._number = self._highest_taken = 0
        self._eaten_at: float | None = None
        self._start_after, self._start_fault = 0.0, ""
        self._failures, self._failing_since = 0, 0.0
        self._stood, self._hopeless = False, False
        self._usual_s = _AHEAD_S / 4
        self._wake: int | None = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._asleep = False
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="sandbox", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[JobResult]:
        queued = QueuedJob(job, Future())
        self._put(queued)
        return queued.future

    def facts(self) -> dict[str, Any]:
        """The first worker's greeting; starts it if needed. Raises InputError, Unavailable."""
        greeting: Future[dict[str, Any]] = Future()
        self._put(greeting)
        return greeting.result()

    @property
    def own_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End the workers and whatever they run. Jobs without a result are `unavailable`."""
        with self._lock:
            self._stopping = True
            self._rouse()
        if not self.own_thread:
            self._thread.join()

    def _put(self, item: QueuedJob | Future[dict[str, Any]]) -> None:
        with self._lock:
            if self._stopping:
                raise ValueError("the pool is closed")
            self._arrived.append(item)
            if self._asleep:
                self._rouse()

    def _rouse(self) -> None:
        """Wake the thread; call with the lock held: the ending thread closes the descriptor."""
        if self._wake is not None:
            os.eventfd_write(self._wake, 1)

    # The thread

    def _serve(self) -> None:
        try:
            while not self._stopping:
                self._take_arrived()
                self._hand_out()
                self._poll()
            fault = None
        except BaseException as raised:  # a fault of this code: nobody may wait for ever
            fault = raised
        self._end(fault)

    def _take_arrived(self) -> None:
        while self._arrived:
            item = self._arrived.popleft()
            if isinstance(item, QueuedJob):
                self._waiting.append(item)
                continue
            try:
                item.set_result(self._first().facts)
            except (InputError, Unavailable) as fault:
                item.set_exception(fault)

    def _first(self) -> Link:
        """A worker that has greeted."""
        for link in self.links.values():
            if link.facts:
                return link
        link = self._workers.first(self._queue, lambda: self._stopping)
        self.links[link.answers] = link
        self._note_standing()
        return link

    def _hand_out(self) -> None:
        wanted = len(self._waiting) + len(self._posted) + len(self._running)
        if (wanted or self._suspects) and time.monotonic() >= self._start_after:
            self._hire(min(self._size, wanted))
        if self._hopeless and not self.links:
            self._give_up(JobResult("unavailable", log=self._start_fault.encode()))
        while self._waiting and self.links and len(self._posted) < self._room():
            queued = self._waiting[0]
            if not queued.tries and not queued.future.set_running_or_notify_cancel():
                self._waiting.popleft()
            elif not self._post(queued):
                return

    def _hire(self, wanted: int) -> None:
        try:
            if self._workers.level is None:
                self._first()
            while len(self.links) < wanted:
                link = self._workers.next(self._queue)
                self.links[link.answers] = link
            while self._suspects and not self._lone:
                self._try_alone(self._suspects.popleft())
        except Unavailable as fault:
            self._fail_to_start(fault)
        except InputError as fault:
            self._give_up(fault)

    def _fail_to_start(self, fault: Unavailable) -> None:
        """The cause of a failed start may pass, and jobs wait; a fault that was there from the start does not."""
        now = time.monotonic()
        self._failing_since = now if not self._failures else self._failing_since
        first, most = _BACKOFF_S
        self._start_fault, self._start_after = str(fault), now + min(most, first * 2 ** min(self._failures, 8))
        self._failures += 1
        worn_out = self._failures >= _FAILURES and now - self._failing_since > _PATIENCE_S
        self._hopeless = worn_out or (fault.permanent and not self._stood)

    def _note_standing(self) -> None:
        self._stood, self._hopeless, self._failures = True, False, 0

    def _room(self) -> int:
        low, high = _AHEAD
        return self._size * max(low, min(high, int(_AHEAD_S / self._usual_s)))

    def _post(self, queued: QueuedJob) -> bool:
        """Whether there was room in the queue."""
        try:
            if not self._queue.post(self._number + 1, queued.job):
                return False
        except OSError as fault:
            self._waiting.popleft()
            self._settle(queued, JobResult("unavailable", log=f"the job could not be sent: {fault}".encode()))
            return True
        self._number += 1
        queued.tries += 1
        self._posted[self._number] = self._waiting.popleft()
        return True

    def _try_alone(self, queued: QueuedJob) -> None:
        """Raises Unavailable; the job then stays pending."""
        queue = None
        try:
            queue = JobQueue()
            queue.post(0, queued.job)
            link = self._workers.next(queue)
        except (Unavailable, OSError) as fault:
            self._suspects.appendleft(queued)
            if queue is not None:
                queue.close()
            raise fault if isinstance(fault, Unavailable) else Unavailable(str(fault)) from fault
        queued.tries += 1
        self._lone[link] = (queue, queued)
        self._running[link] = (queued, link.start_by + queued.job.limits.wall_s + _GRACE_S)

    def _give_up(self, how: JobResult | InputError) -> None:
        """No worker starts: pending jobs get no verdict."""
        queued_jobs = [*self._suspects, *self._posted.values(), *self._waiting]
        self._suspects.clear()
        self._waiting.clear()
        if self._posted:
            self._posted.clear()
            self._queue.drain()
        for queued in queued_jobs:
            self._settle(queued, how)

    def _poll(self) -> None:
        links = {link.answers: link for link in (*self.links.values(), *self._lone)}
        poll = select.poll()
        for fd in (self._wake, *links):
            poll.register(fd, select.POLLIN)
        full = bool(self._waiting) and bool(self.links) and len(self._posted) < self._room()
        if full:
            poll.register(self._queue, select.POLLOUT)
        if len(self._posted) > 2 * self._size and not self._arrived:
            time.sleep(_PAUSE_S)  # the workers have enough to do: several answers per wake-up cost less
        self._asleep = True
        ready = poll.poll(0 if self._arrived or self._stopping else self._patience_ms())
        self._asleep = False
        for fd, _ in ready:
            if fd == self._wake:
                os.eventfd_read(self._wake)
            elif fd in links:
                self._hear(links[fd])
        self._look_at_clocks()

    def _patience_ms(self) -> float | None:
        now = time.monotonic()
        times = [deadline for _, deadline in self._running.values()]
        times += [link.start_by for link in self.links.values() if not link.facts]
        times += [self._eaten_at] if self._eaten_at is not None else []
        wanted = self._waiting or self._suspects or self._posted
        times += [self._start_after] if self._start_after > now and wanted else []
        return max(0.0, min(times) - now) * 1000 + 1 if times else None

    def _hear(self, link: Link) -> None:
        stood = bool(link.facts)
        events = link.receive()
        if link.facts and not stood:
            self._note_standing()
        for event in events:
            if link in self._lone:
                self._hear_lone(link, event)
            elif event.result is None:
                self._highest_taken = max(self._highest_taken, event.number)
                queued = self._posted.pop(event.number, None)
                if queued is not None:
                    self._running[link] = (queued, time.monotonic() + queued.job.limits.wall_s + _GRACE_S)
            elif link in self._running:
                self._finish(self._running.pop(link)[0], event.result)
        if link.broken:
            self._lose(link)

    def _hear_lone(self, link: Link, event: Event) -> None:
        queued = self._lone[link][1]
        if event.result is None:
            self._running[link] = (queued, time.monotonic() + queued.job.limits.wall_s + _GRACE_S)
        elif link in self._running:
            self._finish(self._running.pop(link)[0], event.result)
            link.broken = True  # its only job is done

    def _finish(self, queued: QueuedJob, result: JobResult) -> None:
        self._usual_s += 0.1 * (max(result.wall_s, 1e-4) - self._usual_s)
        if result.end == "wall" and not result.idled and not queued.slow_once:
            twice = replace(queued.job.limits, wall_s=2 * queued.job.limits.wall_s)
            queued.slow_once, queued.job = True, replace(queued.job, limits=twice)
            self._waiting.append(queued)
        elif result.end == "unavailable" and not queued.lost_once:
            self._suspect(queued)
        else:
            self._settle(queued, result)

    def _suspect(self, queued: QueuedJob) -> None:
        queued.lost_once = True
        self._suspects.append(queued)

    def _settle(self, queued: QueuedJob, how: JobResult | InputError) -> None:
        if not queued.future.running() and not queued.future.set_running_or_notify_cancel():
            return
        if isinstance(how, InputError):
            queued.future.set_exception(how)
        else:
            queued.future.set_result(replace(how, tries=queued.tries))

    def _lose(self, link: Link) -> None:
        """The worker is gone. Its job is the suspect; if a fresh worker dies, too, it is the job's fault."""
        queued, _ = self._running.pop(link, (None, 0.0))
        if link in self._lone:
            self._lone.pop(link)[0].close()
        else:
            del self.links[link.answers]
            self._eaten_at = time.monotonic() + _SETTLE_S if self._posted else None
        if not link.facts:
            self._fail_to_start(link.failure())
            if queued is not None:  # it has not run
                queued.tries -= 1
                self._suspects.appendleft(queued)
            return
        link.close()
        if queued is not None and queued.lost_once:
            self._settle(queued, JobResult("lost"))
        elif queued is not None:
            self._suspect(queued)

    def _look_at_clocks(self) -> None:
        now = time.monotonic()
        for link in [link for link, (_, deadline) in self._running.items() if deadline < now]:
            self._lose(link)
        for link in [link for link in self.links.values() if not link.facts and link.start_by < now]:
            self._lose(link)
        if self._eaten_at is not None and now > self._eaten_at:
            self._eaten_at = None
            # A worker took jobs and died before announcing them. The queue is in order, so later jobs reveal them.
            empty = self._queue.unread() == 0
            for number in [number for number in self._posted if empty or number < self._highest_taken]:
                self._suspect(self._posted.pop(number))

    def _end(self, fault: BaseException | None) -> None:
        with self._lock:
            self._stopping = True
            os.close(self._wake)
            self._wake = None
        links = [*self.links.values(), *self._lone]
        for link in links:
            link.ask_to_end()
        for link in links:
            link.close()
        self._queue.close()
        for queue, _ in self._lone.values():
            queue.close()
        self.links.clear()
        running = [queued for queued, _ in self._running.values()]
        items = [*self._arrived, *self._waiting, *self._suspects, *self._posted.values(), *running]
        for item in items:
            if isinstance(item, Future):
                item.set_exception(fault or ValueError("the pool was closed"))
            elif fault is not None and not item.future.done():
                item.future.set_exception(fault)
            elif fault is None:
                self._settle(item, JobResult("unavailable", log=b"the pool was closed"))
