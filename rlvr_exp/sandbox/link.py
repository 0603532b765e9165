"""The parent's side of the workers: starts their processes at the strongest available level, and reads their answers.

Never blocks on a candidate. Used by the dispatcher's thread.
"""

import importlib.util
import json
import os
import select
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.isolation.jail import AUTO, LEVELS, OPEN_AT
from rlvr_exp.sandbox.jobs import JobQueue, JobResult
from rlvr_exp.sandbox.worker import ANSWER, ENDS, EVENT, GREETING, REFUSED_EXIT, TAKEN

_ROOT = str(Path(__file__).resolve().parents[2])
_START_S, _END_S = 60.0, 5.0
_BOOT = (
    "import sys; sys.path[:0] = {roots!r}; from rlvr_exp.sandbox import worker; "
    "worker.main({harness!r}, {level!r}, {packages!r}, {processes!r}, {roots!r}, {temporary!r})"
)
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_REMEDY = (
    "rlvr_exp/docs/sandbox.md, 'In containers', names what to allow; or set sandbox.require and sandbox.level weaker "
    "where the candidates may be trusted that far"
)


class Unavailable(Exception):
    """No worker could be started: the harness's fault or the machine's, never a candidate's."""

    permanent = False
    """Whether the next attempt will fail, too."""


class Broken(Unavailable):
    """A part of the worker does not work here."""

    permanent = True


class LevelRefused(Broken):
    """This machine does not provide the requested level of isolation."""


@dataclass(frozen=True)
class WorkerProgram:
    """The program of every worker of a pool."""

    harness: str
    packages: bool
    processes: int

    def command(self, level: str) -> list[str]:
        # -S: no site packages, no start-up hooks.
        boot = _BOOT.format(
            temporary=tempfile.gettempdir(),
            harness=self.harness,
            level=level,
            packages=_packages() if self.packages else [],
            processes=self.processes,
            roots=_roots(self.harness),
        )
        return [sys.executable, "-S", "-s", "-P", "-B", "-c", boot]

    def environment(self) -> dict[str, str]:
        """A worker's complete environment. Libraries read the numbers of threads when they are loaded; a heap per
        thread would take 64 MB of a candidate's address space each."""
        plain = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
        return plain | (_THREADS if self.packages else {})


@cache
def _packages() -> list[str]:
    """The installed packages' folders, the user's only if this interpreter takes them."""
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [folder for folder in dict.fromkeys([*site.getsitepackages(), *users]) if Path(folder).is_dir()]


@cache
def packages_digest() -> str:
    """A digest of the distributions that candidates see, for the key of cached verdicts; constant in a process.

    Only names of folders count: a distribution changed in place under its own name and version is not noticed.
    """
    seen = [
        sorted(
            name
            for name in os.listdir(folder)
            if name.endswith((".dist-info", ".egg-info")) and not name.startswith("rlvr_exp-")
        )
        for folder in _packages()
    ]
    return blake2b(repr(seen).encode(), digest_size=12).hexdigest()


@cache
def _roots(harness: str) -> list[str]:
    """Folders that the project and the harness are imported from."""
    spec = importlib.util.find_spec(harness.partition(".")[0])
    if spec is None or not spec.origin:
        raise Broken(f"no module {harness}")
    origin = Path(spec.origin).resolve()
    parent = origin.parents[1] if origin.name == "__init__.py" else origin.parent
    return list(dict.fromkeys([_ROOT, str(parent)]))


@dataclass(frozen=True)
class Event:
    """A worker's message: it has taken the job, or the job's result."""

    number: int
    result: JobResult | None


class Link:
    """One worker, starting until it has greeted. `facts`: the level reached and its isolation."""

    def __init__(self, program: WorkerProgram, level: str, queue: JobQueue):
        self._process = subprocess.Popen(
            program.command(level),
            stdin=queue.theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=program.environment(),
            cwd="/",
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.answers = self._process.stdout.fileno()
        os.set_blocking(self.answers, False)
        self._in = bytearray()
        self.broken = False
        self.facts: dict[str, Any] = {}
        self.start_by = time.monotonic() + _START_S

    def await_greeting(self, stopped: Callable[[], bool]) -> bool:
        """Wait until it has greeted, it ends, or `stopped()`; whether it has greeted."""
        while not self.facts and not self.broken and not stopped() and time.monotonic() < self.start_by:
            select.select([self.answers], [], [], 0.1)
            self.receive()
        return bool(self.facts)

    def receive(self) -> list[Event]:
        """The complete messages since the last call. Sets `broken` at the end of the pipe."""
        try:
            while data := os.read(self.answers, 1 << 18):
                self._in += data
                if len(data) < 1 << 16:
                    break
            self.broken = self.broken or not data
        except BlockingIOError:
            pass
        events, at, size = [], 0, len(self._in)
        while size - at >= EVENT.size:
            kind, number, end, status, idled, cpu_s, wall_s, peak_kb, records, log = EVENT.unpack_from(self._in, at)
            middle = at + EVENT.size + records
            if size < middle + log:
                break
            content, printed = bytes(self._in[at + EVENT.size : middle]), bytes(self._in[middle : middle + log])
            if kind == TAKEN:
                events.append(Event(number, None))
            elif kind == ANSWER:
                result = JobResult(ENDS[end], status, content, printed, cpu_s, wall_s, peak_kb, idled)
                events.append(Event(number, result))
            elif kind == GREETING:
                self.facts = json.loads(content)
            at = middle + log
        del self._in[:at]
        return events

    def failure(self) -> Unavailable:
        """End a worker that did not start, and return the reason."""
        late = not self.broken
        if late:
            self._process.kill()
        self._wait()
        error = self._process.stderr.fileno()
        os.set_blocking(error, False)  # the other end may still be open
        try:
            message = os.read(error, 1 << 16).decode(errors="replace").strip()
        except BlockingIOError:
            message = ""
        self.close()
        code = self._process.returncode
        reason = message.splitlines()[-1] if message else f"the worker did not start within {_START_S:.0f} s"
        if not message and not late:
            reason = f"the worker ended with exit code {code} before it stood"
        # A worker may have been killed for lack of memory.
        return LevelRefused(reason) if code == REFUSED_EXIT else Broken(reason) if code > 0 else Unavailable(reason)

    def ask_to_end(self) -> None:
        """The first half of `close`, so that several workers end at the same time."""
        self._process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End the worker and all that it runs: its supervisor does so on request, and is killed if it does not."""
        self.ask_to_end()
        self._wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _wait(self) -> None:
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class IsolationRequest:
    """The requested level: `level` is a name or "auto", `require` the weakest accepted, "" for any."""

    level: str = "auto"
    require: str = ""

    def __post_init__(self) -> None:
        for name, value, extra in (("level", self.level, "auto"), ("require", self.require, "")):
            if value not in (*LEVELS, extra):
                allowed = ", ".join(repr(choice) for choice in (extra, *LEVELS))
                raise InputError(InputProblem(f"sandbox.{name}", "no such level", got=value, allowed=allowed))
        if self.level != "auto" and self.weaker(self.level):
            what = f"is weaker than sandbox.require={self.require}"
            raise InputError(InputProblem("sandbox.level", what, got=self.level, remedy="make one of the two follow"))

    def weaker(self, level: str) -> bool:
        return bool(self.require) and LEVELS.index(level) > LEVELS.index(self.require)


class WorkerManager:
    """Starts workers no weaker than required. `level` is the first worker's; every later worker has it."""

    def __init__(self, program: WorkerProgram, isolation: IsolationRequest):
        self._program, self._isolation = program, isolation
        self.level: str | None = None

    def first(self, queue: JobQueue, stopped: Callable[[], bool]) -> Link:
        """The first worker, at the strongest level that starts; once a level is set, a worker of that level.

        Raises:
            InputError: the required or requested level is not available here.
            Unavailable: no worker starts at all.
        """
        wanted, required = self._isolation.level, self._isolation.require
        # Strongest first; levels too weak come last, to report what is available.
        ladder = (wanted,) if wanted != "auto" else LEVELS if required == "strict" else AUTO
        refused: dict[str, str] = {}
        for level in (self.level,) if self.level else ladder:
            link = self.next(queue, level)
            if link.await_greeting(stopped):
                if self._isolation.weaker(level):
                    link.close()
                    what = f"this machine isolates candidates less than required: {level} is reached ({_list(refused)})"
                    raise InputError(InputProblem("sandbox.require", what, level, required, remedy=_REMEDY))
                if self.level is None and refused:
                    text = f"sandbox: level {level}. Not isolated: {OPEN_AT[level]}. Refused here: {_list(refused)}"
                    print(text, file=sys.stderr, flush=True)
                self.level = level
                return link
            fault = link.failure()
            if not isinstance(fault, LevelRefused):
                raise fault
            refused[level] = str(fault)
        if self.level is not None:
            raise Unavailable(_list(refused))
        if wanted != "auto":
            what = f"cannot be had on this machine: {refused[wanted]}"
            raise InputError(InputProblem("sandbox.level", what, got=wanted, remedy=_REMEDY))
        raise Broken(_list(refused))

    def next(self, queue: JobQueue, level: str | None = None) -> Link:
        """A worker that is still starting. Raises Unavailable."""
        try:
            return Link(self._program, level or self.level, queue)
        except OSError as fault:
            kind = Broken if isinstance(fault, FileNotFoundError | PermissionError) else Unavailable
            raise kind(f"cannot start {sys.executable}: {fault}") from fault


def _list(refused: dict[str, str]) -> str:
    return "; ".join(f"{level}: {reason}" for level, reason in refused.items())
