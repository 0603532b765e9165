"""Shared parts of the sandbox's tests: jobs of the test harness, and views of processes from outside."""

import os
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox.jobs import Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.pool import Pool

HARNESS = "exec_harness"
LIMITS = JobLimits(cpu_s=0.3, wall_s=5.0, memory_mb=100)


@contextmanager
def pool_of(workers: int = 1, **options: Any) -> Iterator[Pool]:
    pool = Pool(workers, **{"harness": HARNESS} | options)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def pool_at(level: str, **options: Any) -> Iterator[Pool]:
    """One worker at a level; skips where this machine has no such level."""
    with pool_of(level=level, **options) as pool:
        try:
            pool.isolation()
        except InputError as fault:
            raise unittest.SkipTest(str(fault)) from fault
        yield pool


def job(code: str, limits: JobLimits = LIMITS, peer: str = "") -> Job:
    return Job(code.encode(), limits, peer.encode())


def answer(value: int) -> Job:
    return job(f"tell({value})")


def told(result: JobResult) -> list[str]:
    """The texts that the candidate sent, in order."""
    return [frame.decode() for frame in frames(result.records)]


_OTHERS: set[int] = set()
"""Processes of pools that other tests of this process keep open."""


def begin_counting() -> None:
    """Processes that already run below this process do not belong to the starting test."""
    _OTHERS.clear()
    _OTHERS.update(descendants())


def descendants(pid: int | None = None) -> list[int]:
    """Every process below `pid`, by default this one, as listed by the kernel; without those of other tests."""
    found, ahead = [], [pid or os.getpid()]
    while ahead:
        children = _children(ahead.pop())
        found += children
        ahead += children
    return [one for one in found if one not in _OTHERS]


def _children(pid: int) -> list[int]:
    """Task by task: a task that ends meanwhile only loses its own list."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += [int(word) for word in (task / "children").read_text().split()]
    return found


def resident_kb(pids: list[int]) -> int:
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * 4


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def settled(count: int) -> bool:
    """Whether so many processes are left within five seconds: processes that are being reaped end by themselves."""
    until = time.monotonic() + 5
    while len(descendants()) != count and time.monotonic() < until:
        time.sleep(0.05)
    return len(descendants()) == count
