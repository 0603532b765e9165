"""The pool: runs jobs on workers, in parallel, for any thread of the trusted parent.

Owns the workers' lives: started lazily, replaced when they die, ended by `close`, with the pool's last reference, with
the interpreter or with the process. The pool never looks into payloads or records: what runs is the harness module
named at construction, its meaning is up to the verifier.
"""

import math
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.pool.dispatcher import Dispatcher
from rlvr_exp.sandbox.pool.job_queue import Job, JobResult, message
from rlvr_exp.sandbox.pool.link import Program, Unavailable
from rlvr_exp.sandbox.pool.worker_manager import IsolationRequest, isolation_facts

_CGROUPS = Path("/sys/fs/cgroup")


def usable() -> int:
    """Cores by affinity and by the control group's quota, shared evenly by the ranks on this machine; at least 1."""
    cores = min(len(os.sched_getaffinity(0)), math.ceil(_quota(_CGROUPS)))
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores // max(1, int(ranks) if ranks.isdigit() else 1))


def _quota(root: Path) -> float:
    """Cores' worth of CPU time that the control group allows; a large number where it sets none."""
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


if TYPE_CHECKING:  # The sandbox runs on a bare interpreter, without Hydra, which the schemas need.
    from rlvr_exp.config.verifier import Sandbox


class Pool:
    """Workers that run candidates of one harness.

    Args:
        workers: how many candidates run at once; 0 means one a core that this process may use, shared by the ranks
            of the machine. A trainer should let its own threads wait meanwhile.
        harness: importable module with `run(payload, send)`, called in each candidate's fork; where jobs have peers,
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
        self._dispatcher = Dispatcher(
            Program(harness, packages, processes), IsolationRequest(level, require), self.size
        )
        # Runs when the pool is forgotten, and before the interpreter ends.
        self._closing = weakref.finalize(self, _close, self._dispatcher, self._owner)

    @classmethod
    def of(cls, sandbox: "Sandbox", harness: str, packages: bool = False, processes: int = 0) -> "Pool":
        """A pool by the `sandbox` node. `JobLimits.of(sandbox)` are its candidates' limits."""
        return cls(sandbox.workers, harness, packages, processes, sandbox.level, sandbox.require)

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit one job, from any thread. The future never raises for what a candidate does.

        It raises InputError where the required level is not available. It can be cancelled while its job is pending.
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
        """For the manifest: the level reached, what is isolated and what is not. Starts a worker if none is there.

        Raises:
            InputError: the required level is not available here.
            RuntimeError: called by a callback, which would wait for its own thread.
        """
        self._check_owner()
        self._check_waits()
        try:
            return isolation_facts(self._dispatcher.facts())
        except Unavailable as fault:
            return {"level": "none", "isolated": [], "not_isolated": [], "fault": str(fault)}

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


def _close(dispatcher: Dispatcher, owner: int) -> None:
    if os.getpid() == owner:
        dispatcher.close()
