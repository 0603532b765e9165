"""The installed Dafny: found on this machine or in an image, run over programs within limits, its command line.

Two families are supported: 2.3 (options with a slash, Debian's package) and 4.x (`dafny verify`). Only 2.3 can be kept
warm: it needs mono, its compiler `mcs` (part of Debian's package) and the folder of Dafny's libraries.

A run is warm (one process for many programs) or cold (a process for each program, the plain command line). A warm process
is replaced after a limit, after a fault, and when it has grown or has judged many programs. Its output is framed, so that no
program can forge it. A process that does not start is started once more before it counts as lost.
"""

import base64
import hashlib
import math
import os
import re
import select
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import cache_home, replacing
from rlvr_exp.domains.dafny.logs import Report, read_4, read_23
from rlvr_exp.domains.dafny.options import INSTALL_DAFNY, build_command
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions as Options
from rlvr_exp.domains.dafny.tokens import has_directive, plain, printed
from rlvr_exp.sandbox.tools import ConfinedProgram, Container, ContainerLimits, Image, Lost, Usage, find_image

ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
_PROBE_S, _BUILD_S = 60, 240
_PROBE_MB = 1024
_LIBRARY = re.compile(r"(/[^\s\"']+)/Dafny\.exe")
_FULL = re.compile(r"Dafny(?: program verifier version)? (2\.3)[.\d]*|^(4\.\d+)[.\d]*", re.MULTILINE)
_START_SCRIPT = 'command -v mono >/dev/null && command -v mcs >/dev/null && head -c 4096 "$(command -v "$1")"'
_COMPILE = '"$@" >said 2>&1 && cat warm.exe || { cat said; exit 1; }'


@dataclass(frozen=True)
class Tool:
    """A Dafny that runs. `command` starts it; `family` is "2.3" or "4"; `version` is its complete version text."""

    command: tuple[str, ...]
    family: str
    version: str
    library: str = ""
    """The folder of Dafny's libraries if it can be kept warm; else empty."""
    prover: str = ""
    """The version of the installed z3 if Dafny has none of its own."""
    image: Image | None = None
    """The image that holds all of it; None: this machine."""

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[str, bytes],
        limits: ContainerLimits,
    ) -> ConfinedProgram | Container:
        """A program beside this Dafny; `limits` are those of its container, if it runs in one.

        Raises:
            Lost: its container does not start.
        """
        return _started(self.image, command, environment, files, limits)

    def described(self) -> dict[str, str]:
        """Its description for the manifest and the cache's keys."""
        return {"dafny": self.version} | ({"z3": self.prover} if self.prover else {})


@cache
def find(path: str = "", image: str = "") -> Tool:
    """The tool that the options name.

    Args:
        path: the program; empty: `dafny` on the PATH.
        image: an image of podman or docker with Dafny; takes the place of `path`.

    Raises:
        InputError: both are set, none is there, or its version is unknown.
    """
    if not image:
        if (found := shutil.which(path or "dafny")) is None:
            raise _problem("verifier.path" if path else "dafny", "Dafny is not there", path, INSTALL_DAFNY)
        return _probed(os.path.abspath(found), None)
    if path:
        raise _problem("verifier.image", "cannot be set together with verifier.path", image, "set one of them")
    try:
        return _probed("dafny", find_image(image, build_command(image)))
    except Lost as fault:
        remedy = "see that podman or docker starts containers on this machine, or set verifier.path"
        raise _problem("verifier.image", "the image does not run", f"{image}: {fault}", remedy) from fault


def _probed(program: str, image: Image | None) -> Tool:
    output = _ask(image, [program, "/version"]) + "\n" + _ask(image, [program, "--version"])
    known = _FULL.search(output)
    if known is None:
        got = output.strip().splitlines()[0][:200] if output.strip() else "no answer to /version and --version"
        where = "verifier.path" if image is None else "verifier.image"
        raise InputError(
            InputProblem(where, "a Dafny of unknown version", got=got, allowed="2.3, 4.x", remedy=INSTALL_DAFNY)
        )
    if known[2]:
        return Tool((program,), "4", known[0], image=image)
    return Tool((program,), "2.3", known[0], _library(program, image), _ask(image, ["z3", "--version"]).strip(), image)


def _library(program: str, image: Image | None) -> str:
    """The folder that Debian's start script names, if mono and its compiler are installed too."""
    head = _ask(image, ["sh", "-c", _START_SCRIPT, "sh", program])
    named = _LIBRARY.search(head) if head.startswith("#!") else None
    return named[1] if named and _ask(image, ["ls", f"{named[1]}/DafnyPipeline.dll"]) else ""


def _ask(image: Image | None, words: Sequence[str]) -> str:
    """The output of a command; empty if it does not end in time."""
    return _output(image, words, {}, _PROBE_S)[1].decode(errors="replace")


def _started(
    image: Image | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    files: Mapping[str, bytes],
    limits: ContainerLimits,
) -> ConfinedProgram | Container:
    if image is None:
        return ConfinedProgram(command, {**ENVIRONMENT, **environment}, files)
    inside = {name: value for name, value in ENVIRONMENT.items() if name != "PATH"}
    return Container(image, command, {**inside, **environment}, files, limits)


def _output(image: Image | None, words: Sequence[str], files: Mapping[str, bytes], seconds: float) -> tuple[int, bytes]:
    """A command's exit code and output; the code is -1 if it does not end in time."""
    program = _started(image, words, {}, files, ContainerLimits(_PROBE_MB))
    deadline, output = time.monotonic() + seconds, b""
    try:
        while select.select([program.output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = program.output.read(1 << 16)
            if not data:
                return program.wait(), output
            output += data
        return -1, output
    finally:
        program.end()


def build(tool: Tool, source: Path) -> bytes:
    """The program of the warm process, compiled once per Dafny and source into the user's cache folder.

    Raises:
        InputError: it does not compile against this Dafny.
    """
    text = source.read_bytes()
    key = hashlib.blake2b(text + tool.version.encode() + tool.library.encode(), digest_size=10).hexdigest()
    built = cache_home() / "dafny" / key / "warm.exe"
    if built.exists():
        return built.read_bytes()
    names = ("DafnyPipeline", "BoogieExecutionEngine", "BoogieCore", "BoogieBasetypes", "BoogieVCGeneration")
    libraries = [f"-r:{tool.library}/{name}.dll" for name in names] + [f"-r:{tool.library}/Dafny.exe"]
    words = ["sh", "-c", _COMPILE, "sh", "mcs", *libraries, "-out:warm.exe", source.name]
    code, output = _output(tool.image, words, {source.name: text}, _BUILD_S)
    if code:
        fault = f"no end within {_BUILD_S} s" if code < 0 else output.decode(errors="replace").strip()[-400:]
        remedy = "try again, or verifier.warm=false, or Debian's dafny"
        raise _problem("verifier.warm", "the warm judge does not compile", fault, remedy)
    built.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(built) as fresh:
        fresh.write_bytes(output)
    return output


def _problem(where: str, what: str, got: str, remedy: str) -> InputError:
    return InputError(InputProblem(where, what, got=got, remedy=remedy))


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
"""A container's own limits are wider than the watched limits, which name the limit that was reached. A warm container has no less
than `_LEAST_MB`."""
_START_S = 120.0
"""Seconds within which a warm process is ready, the first time; an idle machine takes a second or two."""
_MOST_MESSAGE = 200
"""Characters that are kept of the output of a process that did not start."""
_LONGEST = 4 << 20
"""Bytes of output that are kept; no honest log is nearly as long."""


@dataclass(frozen=True)
class RunLimits:
    """Limits of one program: CPU seconds and memory of its process tree, and seconds of the wall clock."""

    cpu_s: float
    wall_s: float
    memory_mb: int


@dataclass(frozen=True)
class ToolRun:
    """Its end, the tool's output, its exit code (99 if it has none) and the CPU time."""

    end: End
    output: str = ""
    code: int = 99
    cpu_s: float = 0.0


class _Watch:
    """One program's clocks. Reading waits in ticks and raises the limit that was reached."""

    def __init__(self, program: ConfinedProgram | Container, limits: RunLimits, before: Usage):
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
        self._program: ConfinedProgram | Container | None = None
        self._most_mb = _LEAST_MB
        self._count = 0
        self._idle = Usage(0.0, 0.0)
        self._buffer = bytearray()

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
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
        """The isolation of the process. Raises Lost: no process starts."""
        return (self._program or self._start()).isolated()

    def close(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None

    def _start(self) -> ConfinedProgram | Container:
        """Start a process, with a second attempt of twice the seconds: a machine under load is slow and not broken."""
        faults = []
        for start_s in (self._start_s, 2 * self._start_s):
            started = self._started(start_s)
            if not isinstance(started, str):
                return started
            faults.append(started)
        raise Lost(f"the warm Dafny did not start: {faults[0]}; then {faults[1]}")

    def _started(self, start_s: float) -> ConfinedProgram | Container | str:
        """A process that is ready, or the reason why it is not."""
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
        late = f"it was not ready after {start_s:g} s"
        spent = {"wall": late, "cpu": f"{late} of CPU time"}
        return spent.get(str(head), "it broke down before it was ready") + (f" and said {output!r}" if output else "")

    def _judge(
        self,
        program: ConfinedProgram | Container,
        text: str,
        extra: Sequence[str],
        limits: RunLimits,
        may_prove: Callable[[], bool],
    ) -> ToolRun:
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
            return ToolRun(frame, cpu_s=watch.cpu_s)
        words, output = frame
        watch.tick()
        self._idle = program.usage()
        code = int(words[1])
        return ToolRun(_ENDS.get(code, "done"), output, code, watch.cpu_s)

    def _frame(self, program: ConfinedProgram | Container, watch: _Watch) -> tuple[list[str], str] | End:
        """The next frame, its words and its text; or the end of the run. Other output is the message of a crash."""
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

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        """As `Warm.run`; `may_prove` is called first, since this process does not stop in the middle."""
        if not may_prove():
            return ToolRun("stopped", code=98)
        command = [*self._tool.command, *self._options, *extra, FILE]
        most = ContainerLimits(limits.memory_mb + _SPARE_MB, math.ceil(limits.cpu_s) + _SPARE_S)
        program = self._tool.start(command, {}, {FILE: text.encode()}, most)
        watch, output = _Watch(program, limits, Usage(0.0, 0.0)), bytearray()
        try:
            while True:
                if ended := watch.tick():
                    return ToolRun(ended, output.decode(errors="replace"), cpu_s=watch.cpu_s)
                if not _readable(program.output.fileno()):
                    continue
                data = program.output.read(1 << 16)
                if not data:
                    break
                if len(output) < _LONGEST:
                    output += data
            code = program.wait()
            return ToolRun("crash" if code >= 125 else "done", output.decode(errors="replace"), code, watch.cpu_s)
        finally:
            program.end()

    def isolated(self) -> list[str]:
        """The isolation of a process."""
        program = self._tool.start(["true"], {}, {}, ContainerLimits(_LEAST_MB))
        program.wait()
        found = program.isolated()
        program.end()
        return found

    def close(self) -> None:
        """Nothing outlives a run."""


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_TICK_S * 1000))


PROBE_RLIMIT = 1_000_000
"""The prover's resource count for one probed body."""
PROBE_CPU_S = 20.0
"""CPU seconds of the first run of probes: nonlinear arithmetic takes long within its count."""


def command_words(tool: Tool, rlimit: int) -> list[str]:
    """All words before the name of the file."""
    if tool.family == "2.3":
        return ["/compile:0", "/nologo", "/vcsCores:1", "/trace"] + ([f"/rlimit:{rlimit}"] if rlimit else [])
    limit = [f"--resource-limit={rlimit}"] if rlimit else []
    return ["verify", "--cores=1", "--log-format=text", *limit]


def front_words(tool: Tool) -> list[str]:
    """Words that stop a plain command line before the proofs, in place of `command_words`; exit code 0: it resolves."""
    return ["/nologo", "/compile:0", "/dafnyVerify:0"] if tool.family == "2.3" else ["resolve"]


def careful_words(tool: Tool) -> list[str]:
    """Words by which the tool treats assumptions as proof obligations; for a given program that assumes nothing."""
    return ["/noCheating:1"] if tool.family == "2.3" else []


def probing_words(tool: Tool, rlimit: int) -> list[str]:
    """As `searching_words`, with a smaller resource count: a vain search for a proof of false may be long."""
    least = min(rlimit or PROBE_RLIMIT, PROBE_RLIMIT)
    return [*searching_words(tool), f"/rlimit:{least}" if tool.family == "2.3" else f"--resource-limit={least}"]


def searching_words(tool: Tool) -> list[str]:
    """Words for a run that only searches for bodies that prove false: no other procedures, the first fault of each
    body."""
    return ["/errorLimit:1", "/proc:Impl$$*"] if tool.family == "2.3" else []


def log_reader(tool: Tool) -> Callable[[str, int], Report]:
    """The parser from (output, exit code) to a report."""
    return read_23 if tool.family == "2.3" else read_4


class ResolveThenVerify:
    """A process for each program, and another for each program whose proofs are not checked."""

    def __init__(self, tool: Tool, words: Sequence[str]):
        self._full, self._front = Cold(tool, words), Cold(tool, front_words(tool))

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        """As `Warm.run`."""
        run = self._full.run(text, extra, limits, may_prove)
        if run.end != "stopped":
            return run
        front = self._front.run(text, extra, limits, lambda: True)
        resolves = front.end == "done" and front.code == 0
        return ToolRun("stopped", code=run.code, cpu_s=front.cpu_s) if resolves else front

    def isolated(self) -> list[str]:
        """The isolation of a process."""
        return self._full.isolated()

    def close(self) -> None:
        """Nothing outlives a run."""


class Resolver:
    """One process of the installed Dafny, kept warm if possible. Raises InputError if none is installed."""

    def __init__(self, path: str = "", image: str = ""):
        tool = find(path, image)
        self._read = log_reader(tool)
        self._limits = RunLimits(Options.cpu_s, Options.wall_s, Options.memory_mb)
        self._warm = bool(tool.library)
        self._runner = Warm(tool, command_words(tool, 0)) if self._warm else Cold(tool, front_words(tool))

    def fault(self, text: str) -> str:
        """The first error that the tool reports on a program; empty if it resolves."""
        if has_directive(plain(text)):
            return "a line begins with #"
        run = self._runner.run(printed(plain(text)), (), self._limits, lambda: not self._warm)
        if run.end == "stopped" or (run.end == "done" and not self._warm and run.code == 0):
            return ""
        if run.end != "done":
            return f"the tool ended with {run.end}"
        faults = self._read(run.output, run.code).faults
        return faults[0].text if faults else run.output[-200:].strip()

    def close(self) -> None:
        """End the process."""
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
