"""Dafny 4: found on this machine, packaged or in an image, and run over programs within limits.

A `Runner` judges one program at a time. Warm, it keeps a language server (`dafny server`, the protocol LSP over its standard
streams) for each set of options. A program is opened as a document, which resolves it; saving the document starts its proofs. A
server is replaced after a limit or a fault, and when it has grown or has judged many programs. Cold, each program has a process of
its own (`dafny verify`). Both give the same result. A server that does not start is started once more before it counts as lost.

Dafny's own time limits are off, since they depend on the load of the machine. The prover stops at a count of resources, which is
the same on every machine; the limits of the process (CPU seconds, memory) hold beside it.
"""

import json
import math
import os
import re
import select
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Self

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.dafny.options import INSTALL_DAFNY, build_command
from rlvr_exp.domains.dafny.options import DafnyVerifierOptions as Options
from rlvr_exp.domains.dafny.package import packaged
from rlvr_exp.domains.dafny.tokens import has_directive, plain, printed
from rlvr_exp.sandbox.tools import ConfinedProgram, Container, ContainerLimits, Image, Lost, Usage, find_image

ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"}
OLDEST = (4, 4)
"""The first version with all the options that a verdict needs."""
REFRESH: tuple[str, ...] = ("--type-system-refresh",)
MANUAL_TRIGGERS: tuple[str, ...] = ("--manual-triggers",)
ISOLATED: tuple[str, ...] = ("--isolate-assertions",)
_VERSION = re.compile(r"^(?:Dafny )?((\d+)\.(\d+)[.\d]*)", re.MULTILINE)
_PROBE_S, _PROBE_MB = 60, 1024


@dataclass(frozen=True)
class Tool:
    """A Dafny that runs."""

    command: tuple[str, ...]
    """The words that start it."""
    version: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that it needs beside `ENVIRONMENT`."""
    solver: str = ""
    """The path of z3; empty: Dafny finds its own."""
    image: Image | None = None
    """The image that holds all of it; None: this machine."""

    def start(
        self, words: Sequence[str], files: Mapping[str, bytes], limits: ContainerLimits
    ) -> ConfinedProgram | Container:
        """Start Dafny with some words; `limits` are those of its container, if it runs in one.

        Raises:
            Lost: its container does not start.
        """
        return _started(self.image, [*self.command, *words], dict(self.environment), files, limits)

    def words(self, command: str, rlimit: int) -> list[str]:
        """The first words of `dafny verify` or `dafny server`.

        Args:
            rlimit: resources of the prover for each batch of assertions; 0: no limit.
        """
        limit = [f"--resource-limit={rlimit}"] if rlimit else []
        solver = [f"--solver-path={self.solver}"] if self.solver else []
        return [command, "--cores=1", "--verification-time-limit=0", *limit, *solver]

    def described(self) -> dict[str, str]:
        """Its description for the manifest and the cache's keys."""
        return {"dafny": self.version}


@cache
def find(path: str = "", image: str = "") -> Tool:
    """The Dafny that the options name: that of an image or a path, else `dafny` on the PATH if it is recent, else the package.

    Raises:
        InputError: both are set, none is there, or the named one is too old.
    """
    if image:
        if path:
            raise _problem("verifier.image", "cannot be set together with verifier.path", image, "set one of them")
        try:
            found = find_image(image, build_command(image))
            return Tool(("dafny",), _recent("dafny", found, "verifier.image"), image=found)
        except Lost as fault:
            remedy = "see that podman or docker starts containers on this machine, or set verifier.path"
            raise _problem("verifier.image", "the image does not run", f"{image}: {fault}", remedy) from fault
    if path:
        program = shutil.which(path)
        if program is None:
            raise _problem("verifier.path", "there is no such program", path, INSTALL_DAFNY)
        return Tool((os.path.abspath(program),), _recent(program, None, "verifier.path"))
    if (program := shutil.which("dafny")) and (version := _version(program, None)) and _numbers(version) >= OLDEST:
        return Tool((os.path.abspath(program),), version)
    own = packaged()
    return Tool(tuple(own.command), own.version, tuple(own.environment.items()), own.solver)


def _recent(program: str, image: Image | None, where: str) -> str:
    version = _version(program, image)
    if not version or _numbers(version) < OLDEST:
        got = f"{version or 'no answer to --version'} of {program}"
        raise InputError(InputProblem(where, "Dafny is too old", got=got, allowed="4.4 or later", remedy=INSTALL_DAFNY))
    return version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def passed_over() -> str:
    """Describe a `dafny` on the PATH that `find` does not use; empty without one."""
    program = shutil.which("dafny")
    if program is None or ((version := _version(program, None)) and _numbers(version) >= OLDEST):
        return ""
    version = version or _version(program, None, "/version")
    return f"{program} is {f'Dafny {version}, older than 4.4' if version else 'broken: it reports no version'}; it is not used"


def _version(program: str, image: Image | None, word: str = "--version") -> str:
    """The version that a program reports; empty if it does not understand the word, as Dafny 2 and 3 do not."""
    running = _started(image, [program, word], {}, {}, ContainerLimits(_PROBE_MB))
    deadline, output = time.monotonic() + _PROBE_S, b""
    try:
        while select.select([running.output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = running.output.read(1 << 16)
            if not data:
                break
            output += data
    finally:
        running.end()
    found = _VERSION.search(output.decode(errors="replace"))
    return found[1] if found else ""


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


def _problem(where: str, what: str, got: str, remedy: str) -> InputError:
    return InputError(InputProblem(where, what, got=got, remedy=remedy))


# The result of a run.

End = Literal["done", "parse", "resolve", "stopped", "cpu", "wall", "memory", "crash"]
"""done: each proof was tried; parse, resolve: the program has errors; stopped: the caller wanted no proofs; cpu, wall, memory: a
limit was reached; crash: Dafny itself failed."""
FILE = "candidate.dfy"
"""The program's file name in every run."""


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning at a place of the program; line and column count from 1."""

    line: int
    column: int
    text: str
    related: "tuple[Diagnostic, ...]" = ()
    """Places that belong to it, such as the postcondition that a path breaks."""

    def __str__(self) -> str:
        return "\n  ".join([f"line {self.line}: {self.text}", *map(str, self.related)])


@dataclass(frozen=True)
class ToolRun:
    """A run over one program."""

    end: End
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    proved: Counter[str] = field(default_factory=Counter)
    """Names of the declarations whose proofs all hold, without the names of their modules and classes."""
    failed: Counter[str] = field(default_factory=Counter)
    """Names of the declarations with a proof that does not hold."""
    fault: str = ""
    """The last output of a Dafny that failed."""
    cpu_s: float = 0.0

    @property
    def verified(self) -> bool:
        """Whether all proofs hold."""
        return self.end == "done" and not self.errors and not self.failed

    @property
    def exhausted(self) -> bool:
        """Whether a proof fell to the prover's resource limit, and no other error was found."""
        return bool(self.errors) and all("out of resource" in one.text for one in self.errors)


@dataclass(frozen=True)
class RunLimits:
    """Limits of one program: CPU seconds and memory of its process tree, and seconds of the wall clock."""

    cpu_s: float
    wall_s: float
    memory_mb: int


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


_TICK_S = 0.05
_LONGEST = 4 << 20
"""Bytes of output that are kept; no honest log is nearly as long."""
_LEAST_MB, _SPARE_MB, _SPARE_S = 2048, 256, 5
"""A container's own limits are wider than the watched limits, which name the limit that was reached."""


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(_TICK_S * 1000))


# Warm.

_DOCUMENT = f"file:///{FILE}"
_MOST_PROGRAMS, _MOST_MB = 400, 1200
_START_S = 120.0
"""Seconds within which a server is ready, the first time; an idle machine takes a second."""
_SIZE = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_FAILED, _CORRECT = 4, 5
"""The status of a declaration, in the protocol's numbers, once all of its proofs were tried."""
_FAULTS: dict[str, End] = {"ParsingFailed": "parse", "ResolutionFailed": "resolve", "InternalException": "crash"}
_WARM_UP = (
    "method Sum(a: int, b: nat) returns (c: int) ensures c >= a { c := a; var i := 0; while i < b { i := i + 1; } }"
)
_NAME = re.compile(r"[\w'?]+")
_BROKEN = re.compile(r"Unable to start the process|[Pp]rover (?:died|error)|[Uu]nexpected prover|[Ii]nternal error")
"""Words of errors about the prover itself: they say nothing about the program."""


class Server:
    """A `dafny server` that judges one program after another.

    Args:
        words: its command line.
        start_s: seconds within which it is ready; the second attempt has twice as many.
    """

    def __init__(self, tool: Tool, words: Sequence[str], start_s: float = _START_S):
        self._tool, self._words, self._start_s = tool, [*words, "--verify-on=Save", "--update-throttling=0"], start_s
        self._program: ConfinedProgram | Container | None = None
        self._most_mb = _LEAST_MB
        self._count = 0
        self._idle = Usage(0.0, 0.0)
        self._buffer = bytearray()

    def run(self, text: str, limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        """Judge one program; once it has resolved, `may_prove` decides whether its proofs are tried.

        Raises:
            Lost: no server starts.
        """
        if limits.memory_mb > self._most_mb:
            self.close()
            self._most_mb = limits.memory_mb
        run = self._judged(self._program or self._start(), text, limits, may_prove)
        broken = run.end in ("crash", "cpu", "wall", "memory")
        if broken or self._count >= _MOST_PROGRAMS or self._idle.memory_mb > _MOST_MB:
            self.close()
        return run

    def isolated(self) -> list[str]:
        """The isolation of the process. Raises Lost: no server starts."""
        return (self._program or self._start()).isolated()

    def close(self) -> None:
        """End the process; the next program starts another."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def _start(self) -> ConfinedProgram | Container:
        """Start a server, with a second attempt of twice the seconds: a machine under load is slow and not broken."""
        faults = []
        for start_s in (self._start_s, 2 * self._start_s):
            if not (fault := self._fault_of_start(start_s)) and self._program is not None:
                return self._program
            faults.append(fault)
        raise Lost(f"Dafny's server did not start: {faults[0]}; then {faults[1]}")

    def _fault_of_start(self, start_s: float) -> str:
        """Start a server and let it judge a first program; the reason why it is not ready, or nothing."""
        self._count, self._buffer = 0, bytearray()
        limits = RunLimits(start_s, start_s, 1 << 20)
        try:
            program = self._tool.start(self._words, {}, ContainerLimits(self._most_mb + _MOST_MB + _SPARE_MB))
        except Lost as fault:
            return str(fault)
        self._program = program
        watch = _Watch(program, limits, Usage(0.0, 0.0))
        own: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
        try:
            program.send(_message({"id": 1, "method": "initialize", "params": own}))
            answer = self._message(program, watch)
            while not isinstance(answer, str) and answer.get("id") != 1:
                answer = self._message(program, watch)
            program.send(_message({"method": "initialized", "params": {}}))
            first = (
                ToolRun(answer) if isinstance(answer, str) else self._judged(program, _WARM_UP, limits, lambda: True)
            )
        except OSError:
            first = ToolRun("crash")
        if first.end == "done":
            return ""
        output = bytes(self._buffer[:200]).decode(errors="replace").strip()
        self.close()
        late = f"it was not ready after {start_s:g} s"
        spent = {"wall": late, "cpu": f"{late} of CPU time"}
        return spent.get(first.end, "it broke down before it was ready") + (f" and said {output!r}" if output else "")

    def _judged(
        self, program: ConfinedProgram | Container, text: str, limits: RunLimits, may_prove: Callable[[], bool]
    ) -> ToolRun:
        watch = _Watch(program, limits, self._idle)
        self._count += 1
        try:
            run = self._opened(program, watch, text, may_prove)
            program.send(_message({"method": "textDocument/didClose", "params": {"textDocument": {"uri": _DOCUMENT}}}))
        except OSError:  # Its end of the pipe is gone.
            run = ToolRun("crash")
        watch.tick()
        self._idle = program.usage()
        return ToolRun(run.end, run.errors, run.warnings, run.proved, run.failed, run.fault, watch.cpu_s)

    def _opened(
        self, program: ConfinedProgram | Container, watch: _Watch, text: str, may_prove: Callable[[], bool]
    ) -> ToolRun:
        """Open the document, prove it, and follow the server's messages about it until each declaration has its status."""
        document = {"uri": _DOCUMENT, "languageId": "dafny", "version": self._count, "text": text}
        program.send(_message({"method": "textDocument/didOpen", "params": {"textDocument": document}}))
        found: Sequence[Mapping[str, Any]] = ()
        symbols: Sequence[Mapping[str, Any]] = ()
        proving = False
        while True:
            message = self._message(program, watch)
            if isinstance(message, str):
                return ToolRun(message)
            named = message.get("params")
            if not isinstance(named, dict) or named.get("version") != self._count:
                continue  # About no document, or an earlier one.
            if message["method"] == "textDocument/publishDiagnostics":
                found = named["diagnostics"]
            elif message["method"] == "dafny/textDocument/symbolStatus":
                symbols = named["namedVerifiables"]
            elif message["method"] == "dafny/compilation/status":
                if end := _FAULTS.get(named["status"]):
                    errors, warnings = _diagnostics(found)
                    return ToolRun(end, errors, warnings, fault=str(named.get("message") or "")[-300:])
                if named["status"] == "ResolutionSucceeded" and not proving:
                    if not may_prove():
                        return ToolRun("stopped")
                    proving = True
                    saved = {"textDocument": {"uri": _DOCUMENT}}
                    program.send(_message({"method": "textDocument/didSave", "params": saved}))
            if proving and all(one["status"] in (_FAILED, _CORRECT) for one in symbols):
                errors, warnings = _diagnostics(found)
                return _sound(ToolRun("done", errors, warnings, *_by_status(text, symbols)))

    def _message(self, program: ConfinedProgram | Container, watch: _Watch) -> dict[str, Any] | End:
        """The next message of the server, or the end of the run."""
        while True:
            head, separator, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            size = _SIZE.search(head) if separator else None
            if separator and size is None:
                return "crash"
            if size is not None and len(rest) >= int(size[1]):
                del self._buffer[: len(head) + 4 + int(size[1])]
                return json.loads(rest[: int(size[1])])
            if not _readable(program.output.fileno()):
                if ended := watch.tick():
                    return ended
                continue
            data = program.output.read(1 << 16)
            if not data or len(self._buffer) > _LONGEST:
                return "crash"
            self._buffer += data


def _message(content: Mapping[str, Any]) -> bytes:
    data = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def _diagnostics(found: Sequence[Mapping[str, Any]]) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """The errors and the warnings among a document's diagnostics, in the order of their places."""
    by_severity: dict[int, list[Diagnostic]] = {1: [], 2: []}
    for one in found:
        if one.get("severity") in by_severity:
            own = (each for each in one.get("relatedInformation") or () if each["location"]["uri"].endswith(f"/{FILE}"))
            related = tuple(_diagnostic(each["location"]["range"], each.get("message") or "") for each in own)
            by_severity[one["severity"]].append(_diagnostic(one["range"], one["message"], related))
    errors, warnings = (sorted(each, key=lambda one: (one.line, one.column)) for each in by_severity.values())
    return tuple(errors), tuple(warnings)


def _diagnostic(place: Mapping[str, Any], message: str, related: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    start = place["start"]
    text = " ".join(message.partition("\nRelated message: ")[0].split())
    return Diagnostic(start["line"] + 1, start["character"] + 1, text, related)


def _sound(run: ToolRun) -> ToolRun:
    """The run, or a crash if the prover itself failed."""
    broken = next((one for one in run.errors if _BROKEN.search(one.text)), None)
    return run if broken is None else ToolRun("crash", run.errors, run.warnings, fault=broken.text[-300:])


def _by_status(text: str, symbols: Sequence[Mapping[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """The names of the proved and of the failed declarations."""
    lines = text.split("\n")
    proved: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for one in symbols:
        start = one["nameRange"]["start"]
        name = _NAME.match(lines[start["line"]], start["character"])
        (proved if one["status"] == _CORRECT else failed)[name[0] if name else ""] += 1
    return proved, failed


# Cold.

_WAITING = re.compile(r"^Verified \d+/\d+ symbols\. Waiting for (\S+) to verify\.$")
_RESULTS = re.compile(r"^Results for (\S+) \([\w -]+\)\n  Overall outcome: (\w+)$", re.MULTILINE)
_OF_ITERATOR = ("MoveNext", "Valid")
"""Members that an iterator has without a declaration, and that only the command line names."""


def outcome(tool: Tool, words: Sequence[str], text: str, limits: RunLimits) -> tuple[End | None, str, int, float]:
    """A process of Dafny over one program: the limit that ended it, if any, its output, its exit code, and its CPU seconds."""
    most = ContainerLimits(limits.memory_mb + _SPARE_MB, math.ceil(limits.cpu_s) + _SPARE_S)
    program = tool.start([*words, FILE], {FILE: text.encode()}, most)
    watch, output = _Watch(program, limits, Usage(0.0, 0.0)), bytearray()
    try:
        while True:
            if ended := watch.tick():
                return ended, output.decode(errors="replace"), 0, watch.cpu_s
            if not _readable(program.output.fileno()):
                continue
            data = program.output.read(1 << 16)
            if not data:
                return None, output.decode(errors="replace"), program.wait(), watch.cpu_s
            if len(output) < _LONGEST:
                output += data
    finally:
        program.end()


class Process:
    """The plain command line, one process for each program."""

    def __init__(self, tool: Tool, words: Sequence[str]):
        self._tool, self._words = tool, list(words)

    def run(self, text: str, limits: RunLimits, may_prove: Callable[[], bool]) -> ToolRun:
        """As `Server.run`; `may_prove` is called first, and then a program is only resolved."""
        proves = may_prove()
        words = [*self._words, "--allow-warnings", "--json-output", "--progress=Symbol", "--log-format=text"]
        if not proves:  # `dafny resolve` reports in words for people.
            words.append("--filter-symbol=nothing.has.this.name")
        ended, output, code, cpu_s = outcome(self._tool, words, text, limits)
        if ended:
            return ToolRun(ended, cpu_s=cpu_s)
        run = _read(output, code)
        end: End = "stopped" if run.end == "done" and not proves else run.end
        return ToolRun(end, run.errors, run.warnings, run.proved, run.failed, run.fault, cpu_s)

    def isolated(self) -> list[str]:
        """The isolation of a process."""
        program = self._tool.start(["--version"], {}, ContainerLimits(_LEAST_MB))
        program.wait()
        found = program.isolated()
        program.end()
        return found

    def close(self) -> None:
        """Nothing outlives a run."""


def _read(output: str, code: int) -> ToolRun:
    """The result of `dafny verify --json-output`. Its exit code decides: 0 verified, 2 invalid, 4 a proof failed."""
    found, sources = list[dict[str, Any]](), set[str]()
    names, outcomes = Counter[str](), dict[str, bool]()
    for line in output.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        value = message.get("value") if isinstance(message, dict) else None
        if isinstance(value, dict) and message.get("type") == "diagnostic":
            related = [_as_served(each) for each in value["relatedInformation"]]
            found.append({"severity": value["severity"], **_as_served(value), "relatedInformation": related})
            sources.update([value["source"]] if value["severity"] == 1 else [])
        elif isinstance(value, str) and (waiting := _WAITING.match(value)):
            names[waiting[1]] += 1
        elif isinstance(value, str):
            for name, outcome in _RESULTS.findall(value):
                outcomes[name] = outcomes.get(name, True) and outcome == "Correct"
    errors, warnings = _diagnostics(found)
    if code == 2 and errors:
        return ToolRun("parse" if "Parser" in sources else "resolve", errors, warnings)
    if code not in (0, 4):
        return ToolRun("crash", errors, warnings, fault=output[-300:].strip())
    proved, failed = Counter[str](), Counter[str]()
    for name, count in names.items():
        last = name.rpartition(".")[2]
        if last not in _OF_ITERATOR:
            (proved if outcomes.get(name, True) else failed)["constructor" if last == "_ctor" else last] += count
    if code == 4 and not failed:
        failed[""] += 1
    return _sound(ToolRun("done", errors, warnings, proved, failed))


def _as_served(value: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the command line in the form of the language server, whose lines count from 0."""
    start, text = value["location"]["range"]["start"], value["defaultFormatMessage"]
    for number, argument in enumerate(value["arguments"]):
        text = text.replace(f"{{{number}}}", str(argument))
    place = {"start": {"line": start["line"] - 1, "character": start["character"]}}
    return {"message": text, "range": place, "location": {"uri": value["location"]["uri"], "range": place}}


class Runner:
    """Judges programs one at a time, with a process for each set of options.

    Args:
        warm: keep the processes for further programs.
    """

    def __init__(self, tool: Tool, rlimit: int, warm: bool = True):
        self._tool, self._rlimit, self._warm = tool, rlimit, warm
        self._judges: dict[tuple[tuple[str, ...], bool], Server | Process] = {}

    def run(
        self, text: str, options: tuple[str, ...], limits: RunLimits, may_prove: Callable[[], bool] = lambda: True
    ) -> ToolRun:
        """Judge one program under some options of Dafny; once it has resolved, `may_prove` decides whether its proofs are tried.

        Raises:
            Lost: Dafny does not start.
        """
        # A server can report an iterator as correct before it has proved it.
        return self._judge(options, self._warm and "iterator" not in text).run(text, limits, may_prove)

    def isolated(self) -> list[str]:
        """The isolation of its processes. Raises Lost: Dafny does not start."""
        return self._judge((), self._warm).isolated()

    def close(self) -> None:
        """End all processes."""
        for judge in self._judges.values():
            judge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _judge(self, options: tuple[str, ...], warm: bool) -> Server | Process:
        if (options, warm) not in self._judges:
            make, command = (Server, "server") if warm else (Process, "verify")
            self._judges[options, warm] = make(self._tool, [*self._tool.words(command, self._rlimit), *options])
        return self._judges[options, warm]


class Resolver:
    """A Dafny that resolves programs without proving them. Raises InputError if none is there."""

    def __init__(self, path: str = "", image: str = ""):
        self._runner = Runner(find(path, image), 0)
        self._limits = RunLimits(Options.cpu_s, Options.wall_s, Options.memory_mb)

    def fault(self, text: str) -> str:
        """The first error that Dafny reports on a program; empty if it resolves."""
        if has_directive(plain(text)):
            return "a line begins with #"
        run = self._runner.run(printed(plain(text)), (), self._limits, lambda: False)
        if run.end == "stopped":
            return ""
        return str(run.errors[0]) if run.errors else f"Dafny ended with {run.end}: {run.fault}"

    def close(self) -> None:
        """End the process."""
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
