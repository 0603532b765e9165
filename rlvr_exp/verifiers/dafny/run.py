"""One run of Dafny over one program, within limits: warm (one process for many programs) or cold (a process for each).

Owns the processes' lives and the clocks; knows nothing of guards and verdicts. A warm process is replaced after a
limit, after a fault, and when it has grown or has judged many; its output is framed, so that no program can forge
it. A process that does not start is started once more before it counts as lost. A cold process is the plain command
line.
"""

import base64
import math
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlvr_exp.sandbox.containers import Container, ContainerLimits
from rlvr_exp.sandbox.tools import Lost, Program, Usage
from rlvr_exp.verifiers.dafny.tool import Tool, build

End = Literal["done", "stopped", "cpu", "wall", "memory", "crash"]
_ENDS: dict[int, End] = {98: "stopped", 99: "crash"}
FILE = "candidate.dfy"
"""The program's file name in every run: names reach the prover, so they must not differ."""

_SOURCE = Path(__file__).with_name("warm.cs")
_WARM_UP = """
method Sum(a: array<int>) returns (s: int)
  requires a.Length > 0
  ensures s == a[0] || s != a[0]
{
  var i := 0; s := 0;
  while i < a.Length
    invariant 0 <= i <= a.Length
  { s := s + a[i]; i := i + 1; }
}
function Len(s: seq<int>): nat { if |s| == 0 then 0 else 1 + Len(s[1..]) }
datatype Tree = Leaf | Node(Tree, int, Tree)
"""
_TICK_S = 0.05
_MOST_PROGRAMS, _MOST_MB = 400, 700
_LEAST_MB, _SPARE_MB, _SPARE_S = 2048, 256, 5
"""A container's own limits lie beyond those that are watched here, which say what was reached; no warm one has less."""
_START_S = 120.0
"""Seconds within which a warm process is ready, the first time; an idle machine takes a second or two."""
_MOST_MESSAGE = 200
"""Characters that are kept of the output of a process that did not start."""
_LONGEST = 4 << 20
"""Bytes of output that are kept; no honest log is nearly as long."""


@dataclass(frozen=True)
class RunLimits:
    """What one program may use: CPU seconds and memory of its process tree, and seconds of the wall clock."""

    cpu_s: float
    wall_s: float
    memory_mb: int


@dataclass(frozen=True)
class Run:
    """How it ended, the tool's output, its exit code (99 where it has none) and the CPU time."""

    end: End
    output: str = ""
    code: int = 99
    cpu_s: float = 0.0


class _Watch:
    """One program's clocks. Reading waits in ticks and raises the limit that was reached."""

    def __init__(self, program: Program | Container, limits: RunLimits, before: Usage):
        self._program, self._limits, self._before = program, limits, before
        self._deadline = time.monotonic() + limits.wall_s
        self.cpu_s = 0.0

    def tick(self) -> End | None:
        """The limit that is exceeded, if any."""
        used = self._program.usage()
        self.cpu_s = max(self.cpu_s, used.cpu_s - self._before.cpu_s)
        if self.cpu_s > self._limits.cpu_s:
            return "cpu"
        if used.memory_mb - self._before.memory_mb > self._limits.memory_mb:
            return "memory"
        return "wall" if time.monotonic() > self._deadline else None


class Warm:
    """A Dafny 2.3 that judges one program after another.

    Args:
        start_s: seconds within which a process is ready; the second attempt has twice as many.
    """

    def __init__(self, tool: Tool, options: Sequence[str], start_s: float = _START_S):
        self._tool, self._options, self._start_s = tool, list(options), start_s
        self._built = build(tool, _SOURCE)
        self._program: Program | Container | None = None
        self._most_mb = _LEAST_MB
        self._count = 0
        self._idle = Usage(0.0, 0.0)
        self._buffer = bytearray()

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> Run:
        """Judge one program; once it has resolved, `may_prove` decides whether its proofs are checked.

        Raises:
            Lost: no process starts.
        """
        if limits.memory_mb > self._most_mb:
            self.close()
            self._most_mb = limits.memory_mb
        run = self._judge(self._program or self._start(), text, extra, limits, may_prove)
        broken = run.end in ("crash", "cpu", "wall", "memory")
        if broken or self._count >= _MOST_PROGRAMS or self._idle.memory_mb > _MOST_MB:
            self.close()
        return run

    def isolated(self) -> list[str]:
        """What the process is isolated from. Raises Lost: no process starts."""
        return (self._program or self._start()).isolated()

    def close(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None

    def _start(self) -> Program | Container:
        """Start a process, with a second attempt of twice the seconds: a machine under load is slow and not broken, and
        a process that was killed for another's memory starts the next time."""
        faults = []
        for start_s in (self._start_s, 2 * self._start_s):
            started = self._started(start_s)
            if not isinstance(started, str):
                return started
            faults.append(started)
        raise Lost(f"the warm Dafny did not start: {faults[0]}; then {faults[1]}")

    def _started(self, start_s: float) -> Program | Container | str:
        """A process that is ready, or why it is not."""
        words = "\t".join([*self._options, "/trace", FILE])
        command = ["mono", "warm.exe", self._tool.library, words]
        files = {FILE: _WARM_UP.encode(), "warm.exe": self._built}
        most = ContainerLimits(self._most_mb + _MOST_MB + _SPARE_MB)
        self._count, self._buffer = 0, bytearray()
        try:
            program = self._program = self._tool.start(command, {"MONO_PATH": self._tool.library}, files, most)
        except Lost as fault:
            return str(fault)
        head = self._frame(program, _Watch(program, RunLimits(start_s, start_s, 1 << 20), Usage(0.0, 0.0)))
        if not isinstance(head, str) and head[0] == ["ready"]:
            self._idle = program.usage()
            return program
        output = self._buffer[:_MOST_MESSAGE].decode(errors="replace").strip()
        self.close()
        spent = {
            "wall": f"it was not ready after {start_s:g} s",
            "cpu": f"it was not ready after {start_s:g} s of CPU time",
        }
        return spent.get(str(head), "it broke down before it was ready") + (f" and said {output!r}" if output else "")

    def _judge(
        self,
        program: Program | Container,
        text: str,
        extra: Sequence[str],
        limits: RunLimits,
        may_prove: Callable[[], bool],
    ) -> Run:
        watch = _Watch(program, limits, self._idle)
        self._count += 1
        try:
            line = "\t".join([*self._options, *extra, "/trace", FILE])
            program.send(base64.b64encode(text.encode()) + b"\n" + line.encode() + b"\n")
            frame = self._frame(program, watch)
            if not isinstance(frame, str) and frame[0] == ["resolved"]:
                program.send(b"go\n" if may_prove() else b"stop\n")
                frame = self._frame(program, watch)
        except OSError:  # its end of the pipe is gone
            frame = "crash"
        if isinstance(frame, str):
            return Run(frame, cpu_s=watch.cpu_s)
        words, output = frame
        watch.tick()
        self._idle = program.usage()
        code = int(words[1])
        return Run(_ENDS.get(code, "done"), output, code, watch.cpu_s)

    def _frame(self, program: Program | Container, watch: _Watch) -> tuple[list[str], str] | End:
        """The next frame: its words and its text; or why there is none. Other output is the message of a crash."""
        while True:
            head, newline, rest = bytes(self._buffer).partition(b"\n")
            if newline:
                *words, size = head.decode(errors="replace").split() or [""]
                if not size.isdecimal():
                    return "crash"
                if len(rest) >= int(size):
                    del self._buffer[: len(head) + 1 + int(size)]
                    return words, rest[: int(size)].decode(errors="replace")
            if not _readable(program.output.fileno()):
                ended = watch.tick()
                if ended:
                    return ended
                continue
            data = program.output.read(1 << 16)
            if not data:
                return "crash"
            self._buffer += data


class Cold:
    """The plain command line, one process for each program."""

    def __init__(self, tool: Tool, options: Sequence[str]):
        self._tool, self._options = tool, list(options)

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> Run:
        """As `Warm.run`; `may_prove` is called first, since this process does not stop in the middle."""
        if not may_prove():
            return Run("stopped", code=98)
        command = [*self._tool.command, *self._options, *extra, FILE]
        most = ContainerLimits(limits.memory_mb + _SPARE_MB, math.ceil(limits.cpu_s) + _SPARE_S)
        program = self._tool.start(command, {}, {FILE: text.encode()}, most)
        try:
            return self._read(program, _Watch(program, limits, Usage(0.0, 0.0)))
        finally:
            program.end()

    def isolated(self) -> list[str]:
        """What a process is isolated from."""
        program = self._tool.start(["true"], {}, {}, ContainerLimits(_LEAST_MB))
        program.wait()
        found = program.isolated()
        program.end()
        return found

    def close(self) -> None:
        """Nothing outlives a run."""

    def _read(self, program: Program | Container, watch: _Watch) -> Run:
        output = bytearray()
        while True:
            ended = watch.tick()
            if ended:
                return Run(ended, output.decode(errors="replace"), cpu_s=watch.cpu_s)
            if not _readable(program.output.fileno()):
                continue
            data = program.output.read(1 << 16)
            if not data:
                break
            if len(output) < _LONGEST:
                output += data
        code = program.wait()
        return Run("crash" if code >= 125 else "done", output.decode(errors="replace"), code, watch.cpu_s)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_TICK_S * 1000))
