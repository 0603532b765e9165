"""What goes into the pool and what comes out: data shared by every verifier that runs untrusted code."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

End = Literal["exit", "cpu", "wall", "memory", "output", "lost", "unavailable"]


class LimitOptions(Protocol):
    """The part of the `sandbox` node that limits one candidate."""

    cpu_s: float
    wall_s: float
    memory_mb: int
    output_kb: int


class NamedLimits(Protocol):
    """Limits that a problem names; 0 where it names none."""

    cpu_s: float
    wall_s: float
    memory_mb: int


@dataclass(frozen=True)
class JobLimits:
    """What one candidate may use, everything that it starts and its peer included."""

    cpu_s: float = 2.0
    wall_s: float = 10.0
    memory_mb: int = 256
    """Beyond the bare interpreter's: what each of its processes may write to and shares with nobody, and of a tree what
    all of it holds. Address space, too, with 2 GB more where installed packages can be mapped."""
    output_kb: int = 64
    """What it may print."""
    result_kb: int = 1024
    """Its records."""

    @classmethod
    def of(cls, options: LimitOptions) -> "JobLimits":
        """The limits that the `sandbox` node sets."""
        return cls(options.cpu_s, options.wall_s, options.memory_mb, options.output_kb)

    def named_by(self, problem: NamedLimits) -> "JobLimits":
        """These, but for what the problem names itself."""
        return replace(
            self,
            cpu_s=problem.cpu_s or self.cpu_s,
            wall_s=problem.wall_s or self.wall_s,
            memory_mb=problem.memory_mb or self.memory_mb,
        )

    def doubled(self) -> "JobLimits":
        """Twice the wall time: for the one retry of what fell to the wall clock where a busy machine may be why."""
        return replace(self, wall_s=2 * self.wall_s)


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
    """What a candidate's process left behind. Nothing in it is trusted but the limits, clocks and status."""

    end: End
    """`exit`: it ended itself; a limit's name: killed by it; `lost`: it brought down a fresh worker twice;
    `unavailable`: no worker could be had, the only end that is not the candidate's doing."""
    status: int = 0
    """Exit code, or minus the signal's number."""
    records: bytes = b""
    """What came over the result pipe: frames, if the harness wrote them."""
    log: bytes = b""
    """What it printed, capped."""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_kb: int = 0
    idled: bool = False
    """It fell to the wall clock asleep, and had never waited long for a core: a busy machine was not the reason."""
    tries: int = 1

    @property
    def reproducible(self) -> bool:
        """Whether another day would see the same end: not where the clock, the machine or the worker had a hand."""
        return self.end not in ("wall", "lost", "unavailable")


class Cut(ValueError):
    """The last frame is not whole: its sender was killed, or forged it."""


def frames(records: bytes) -> Iterator[bytes]:
    """The frames inside `records`, one by one, so that those before a cut are kept. Raises Cut."""
    at = 0
    while at < len(records):
        end = at + 4 + int.from_bytes(records[at : at + 4], "big")
        if at + 4 > len(records) or end > len(records):
            raise Cut("a frame is cut short")
        yield records[at + 4 : end]
        at = end
