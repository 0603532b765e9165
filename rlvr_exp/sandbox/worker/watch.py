"""One candidate's pipes and clocks, watched by the zygote. Standard library only.

What a candidate sends is carried, counted and never read. It is kept in memory that forks do not get, so that no later
candidate finds it.
"""

import mmap
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

from rlvr_exp.sandbox.isolation.process_tree import Usage
from rlvr_exp.sandbox.worker.protocol import EVENT

_TICK_S, _QUICK_MS = 0.05, 4
_CHUNK = 1 << 16
_WIPE_ON_FORK = 18
"""MADV_WIPEONFORK: forks see zeros."""


def private_memory(size: int) -> mmap.mmap:
    """Zeros, not shared with forks."""
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class Outbox:
    """Memory for one answer: the head, then records, then log; the two with room for one more read."""

    def __init__(self) -> None:
        self._map, self._size = private_memory(mmap.PAGESIZE), 0
        self.head = self.records = self.log = memoryview(b"")

    def reserve(self, records: int, log: int) -> None:
        """Empty room for that many bytes of each. Views handed out before must not be used any more."""
        first = EVENT.size
        middle = first + records + _CHUNK
        wanted = middle + log + _CHUNK
        room = private_memory(wanted) if wanted > self._size else None
        for part in (self.head, self.records, self.log):
            part.release()
        if room is not None:
            self._map.close()
            self._map, self._size = room, wanted
            room.madvise(_WIPE_ON_FORK)
        view = memoryview(self._map)
        self.head, self.records, self.log = view[:first], view[first:middle], view[middle:wanted]

    def forget(self, used: int) -> None:
        """Return much-used memory."""
        if used > 1 << 18:
            self._map.madvise(mmap.MADV_DONTNEED)


class Stream:
    """A pipe's reading end and where its bytes go."""

    def __init__(self, fd: int, into: memoryview, cap: int):
        self.fd, self.size = fd, 0
        self._into, self._cap = into, cap
        os.set_blocking(fd, False)

    @property
    def data(self) -> memoryview:
        return self._into[: self.size]

    def take(self) -> tuple[bool, bool]:
        """Read the available bytes: whether more may come, and whether it was more than allowed."""
        try:
            got = os.readv(self.fd, [self._into[self.size : self.size + _CHUNK]])
        except BlockingIOError:
            return True, False
        self.size += got
        over = self.size > self._cap
        self.size = min(self.size, self._cap)
        return got > 0, over


@dataclass(frozen=True)
class Bounds:
    """`tree`: how much all of the candidate uses, where no limit of one process holds it; else None."""

    cpu_s: float
    deadline: float
    memory_kb: int
    tasks: int
    processes: int
    tree: Callable[[], Usage] | None


class Watch:
    """`end` is the limit that ended the candidate: "cpu", "wall", "memory", "output"; else None. `exit`: its pidfd."""

    def __init__(self, pids: list[int], streams: list[Stream], jobs: int, bounds: Bounds):
        self._pids, self._streams, self._jobs = pids, {stream.fd: stream for stream in streams}, jobs
        self._bounds = bounds
        self._cpu_seen = dict.fromkeys(pids, 0.0)
        self.end: str | None = None
        self._look_at = time.monotonic() + _TICK_S
        self.exit = os.pidfd_open(pids[0])
        self._first, self._poll = select.poll(), select.poll()
        self._first.register(self.exit, select.POLLIN)
        for fd in (*self._streams, self.exit):
            self._poll.register(fd, select.POLLIN)
        self._poll.register(jobs, 0)

    def until_exit_or_limit(self) -> None:
        # Most candidates end at once, with less output than a pipe holds: one wait, no reading in between.
        if self._first.poll(_QUICK_MS):
            return
        while self.end is None:
            for fd, event in self._poll.poll(self._patience() * 1000):
                if fd == self.exit:
                    return
                if fd == self._jobs and event & (select.POLLHUP | select.POLLERR):
                    os._exit(0)
                if fd in self._streams and not self._take(fd):
                    self._poll.unregister(fd)
            self._check_limits()

    def drain(self) -> None:
        """Read what the tree wrote before it ended; nobody is left to write more."""
        for stream in self._streams.values():
            before = -1
            while before < stream.size and self.end != "output":
                before = stream.size
                self._take(stream.fd)

    def close(self) -> None:
        os.close(self.exit)
        for fd in self._streams:
            os.close(fd)

    def _patience(self) -> float:
        return max(0.001, min(_TICK_S, self._bounds.deadline - time.monotonic()))

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_of(pid) for pid in self._pids)

    def _check_limits(self) -> None:
        if self.end is not None:
            return
        bounds, now = self._bounds, time.monotonic()
        used = None
        if bounds.tree is not None and now >= self._look_at:  # reading the usage costs too much for each printed line
            used, self._look_at = bounds.tree(), now + _TICK_S / 2
        if max(self.cpu_s, used.cpu_s if used else 0.0) > bounds.cpu_s:
            self.end = "cpu"
        elif now > bounds.deadline:
            self.end = "wall"
        elif used is not None and (
            used.memory_kb > bounds.memory_kb or used.tasks > bounds.tasks or used.processes > bounds.processes
        ):
            self.end = "memory"

    def _cpu_of(self, pid: int) -> float:
        try:
            self._cpu_seen[pid] = time.clock_gettime((~pid << 3) | 2)
        except OSError:  # a peer that has ended
            pass
        return self._cpu_seen[pid]

    def _take(self, fd: int) -> bool:
        more, over = self._streams[fd].take()
        if over:
            self.end = "output"
        return more
