"""Jobs with their limits, their results, and the queue that hands jobs to workers.

The queue is a socket that several workers read; the kernel gives each packet to one of them.
"""

import array
import fcntl
import os
import socket
import termios
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rlvr_exp.sandbox.worker import INLINE, REQUEST

if TYPE_CHECKING:  # The sandbox runs on a bare interpreter, without Hydra, which the schemas need.
    from rlvr_exp.config.verifier import Sandbox

End = Literal["exit", "cpu", "wall", "memory", "output", "lost", "unavailable"]


@dataclass(frozen=True)
class JobLimits:
    """Limits of one candidate, of everything that it starts and of its peer, together."""

    cpu_s: float = 2.0
    wall_s: float = 10.0
    memory_mb: int = 256
    """Beyond the bare interpreter's memory: private writable memory of each process, and the memory held by a tree of
    processes. Address space, too, with 2 GB more where installed packages can be mapped."""
    output_kb: int = 64
    """Limit of its output."""
    result_kb: int = 1024
    """Limit of its records."""

    @classmethod
    def of(cls, options: "Sandbox") -> "JobLimits":
        """The limits that the `sandbox` node sets."""
        return cls(options.cpu_s, options.wall_s, options.memory_mb, options.output_kb)

    def named_by(self, named: Any) -> "JobLimits":
        """These limits, except those that a problem's limits or a verifier's options name; 0 names none."""
        return replace(
            self,
            cpu_s=named.cpu_s or self.cpu_s,
            wall_s=named.wall_s or self.wall_s,
            memory_mb=named.memory_mb or self.memory_mb,
        )


@dataclass(frozen=True)
class Job:
    """One candidate. `payload` is the harness's own format, and holds no answer.

    With a `peer`, a second process, confined apart, runs the harness's `serve(peer, fd)`, and `run(payload, send, fd)`
    gets the other end of a stream between the two.
    """

    payload: bytes
    limits: JobLimits = JobLimits()
    peer: bytes = b""


@dataclass(frozen=True)
class JobResult:
    """The result of a candidate's process. Nothing in it is trusted but the limits, clocks and status."""

    end: End
    """`exit`: it ended itself; a limit's name: killed by it; `lost`: it brought down a fresh worker twice;
    `unavailable`: no worker started, the only end that is not caused by the candidate."""
    status: int = 0
    """Exit code, or minus the signal's number."""
    records: bytes = b""
    """The bytes from the result pipe: frames, if the harness wrote them."""
    log: bytes = b""
    """Its output, capped."""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_kb: int = 0
    idled: bool = False
    """Whether it reached the wall clock limit asleep, without long waits for a core: not because of a busy machine."""
    tries: int = 1

    @property
    def reproducible(self) -> bool:
        """Whether a rerun would end the same way: the clock, the machine or the worker was no cause."""
        return self.end not in ("wall", "lost", "unavailable")


class Cut(ValueError):
    """The last frame is incomplete: its sender was killed, or forged it."""


def frames(records: bytes) -> Iterator[bytes]:
    """The frames inside `records`, one by one, so that frames before a cut are kept. Raises Cut."""
    at = 0
    while at < len(records):
        end = at + 4 + int.from_bytes(records[at : at + 4], "big")
        if at + 4 > len(records) or end > len(records):
            raise Cut("a frame is cut short")
        yield records[at + 4 : end]
        at = end


def message(number: int, job: Job) -> bytes:
    """The head of a job's packet. Raises ValueError if a limit is out of all range."""
    limits = job.limits
    try:
        sizes = limits.memory_mb, limits.output_kb, limits.result_kb, len(job.payload), len(job.peer)
        return REQUEST.pack(number, limits.cpu_s, limits.wall_s, *sizes)
    except Exception as fault:
        raise ValueError(f"a job that no worker can take: {limits}: {fault}") from fault


class JobQueue:
    """The queue. `theirs` is the workers' end, handed to each as its standard input."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)

    def fileno(self) -> int:
        return self._ours.fileno()

    def post(self, number: int, job: Job) -> bool:
        """Queue a job; whether there was room. Raises OSError if the machine has no descriptors or memory left."""
        head = message(number, job)
        try:
            if len(job.payload) + len(job.peer) <= INLINE:
                self._ours.send(head + job.payload + job.peer)
            else:
                file = os.memfd_create("job", os.MFD_CLOEXEC)
                try:
                    for part in (job.payload, job.peer):
                        data = memoryview(part)
                        while data:
                            data = data[os.write(file, data) :]
                    socket.send_fds(self._ours, [head], [file])
                finally:
                    os.close(file)
        except BlockingIOError:
            return False
        return True

    def unread(self) -> int:
        """Bytes that no worker has taken yet."""
        count = array.array("i", [0])
        fcntl.ioctl(self._ours, termios.TIOCOUTQ, count)
        return count[0]

    def drain(self) -> None:
        """Remove jobs that no worker has taken. Needs no descriptor: there may be none left."""
        try:
            while self.theirs.recv(1, socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()
