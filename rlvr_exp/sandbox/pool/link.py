"""The parent's end of one worker: starts the process and reads its answers; never blocks on a candidate."""

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
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rlvr_exp.sandbox.pool.job_queue import JobQueue, JobResult
from rlvr_exp.sandbox.worker.protocol import ANSWER, ENDS, EVENT, GREETING, REFUSED_EXIT, TAKEN

_ROOT = str(Path(__file__).resolve().parents[3])
_START_S, _END_S = 60.0, 5.0
_BOOT = (
    "import sys; sys.path[:0] = {roots!r}; from rlvr_exp.sandbox.worker import worker; "
    "worker.main({harness!r}, {level!r}, {packages!r}, {processes!r}, {roots!r}, {temporary!r})"
)
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


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
class Program:
    """The program of every worker of a pool."""

    harness: str
    packages: bool
    processes: int

    def command(self, level: str) -> list[str]:
        # -S: no site packages, no start-up hooks.
        found = _packages() if self.packages else []
        boot = _BOOT.format(
            temporary=tempfile.gettempdir(),
            harness=self.harness,
            level=level,
            packages=found,
            processes=self.processes,
            roots=_roots(self.harness),
        )
        return [sys.executable, "-S", "-s", "-P", "-B", "-c", boot]

    def environment(self) -> dict[str, str]:
        """A worker's complete environment. Libraries read the numbers of threads when they are loaded; a heap per
        thread would take 64 MB of a candidate's address space each."""
        return {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"} | (
            _THREADS if self.packages else {}
        )


@dataclass(frozen=True)
class Event:
    """A worker's message: it has taken the job, or the job's result."""

    number: int
    result: JobResult | None


class Link:
    """One worker, starting until it has greeted. `facts`: the level reached and what it isolates."""

    def __init__(self, program: Program, level: str, queue: JobQueue):
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
        return self._parsed()

    def await_greeting(self, stopped: Any) -> bool:
        """Wait until it has greeted, it ends, or `stopped()`; whether it has greeted."""
        while not self.facts and not self.broken and not stopped() and time.monotonic() < self.start_by:
            select.select([self.answers], [], [], 0.1)
            self.receive()
        return bool(self.facts)

    def failure(self) -> Unavailable:
        """Ends a worker that did not start, and returns the reason."""
        late = not self.broken
        if late:
            self._process.kill()
        self._wait()
        message = _read_now(self._process.stderr.fileno()).decode(errors="replace").strip()
        self.close()
        code = self._process.returncode
        reason = message.splitlines()[-1] if message else f"the worker did not start within {_START_S:.0f} s"
        if not message and not late:
            reason = f"the worker ended with exit code {code} before it stood"
        # A worker may have been killed for lack of memory.
        return LevelRefused(reason) if code == REFUSED_EXIT else Broken(reason) if code > 0 else Unavailable(reason)

    def close(self) -> None:
        """End the worker and all that it runs: its supervisor does so on request, and is killed where it does not."""
        self._process.send_signal(signal.SIGTERM)
        self._wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _wait(self) -> None:
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask_to_end(self) -> None:
        """The first half of `close`, so that several workers end at the same time."""
        self._process.send_signal(signal.SIGTERM)

    def _parsed(self) -> list[Event]:
        events, at, size = [], 0, len(self._in)
        while size - at >= EVENT.size:
            kind, number, end, status, idled, cpu_s, wall_s, peak_kb, records, log = EVENT.unpack_from(self._in, at)
            middle = at + EVENT.size + records
            if size < middle + log:
                break
            if kind == TAKEN:
                events.append(Event(number, None))
            elif kind == ANSWER:
                isolation_facts = bytes(self._in[at + EVENT.size : middle])
                printed = bytes(self._in[middle : middle + log])
                result = JobResult(ENDS[end], status, isolation_facts, printed, cpu_s, wall_s, peak_kb, idled)
                events.append(Event(number, result))
            elif kind == GREETING:
                self.facts = json.loads(self._in[at + EVENT.size : middle])
            at = middle + log
        del self._in[:at]
        return events


def _read_now(file: int) -> bytes:
    """The available bytes, though the other end may still be open."""
    os.set_blocking(file, False)
    try:
        return os.read(file, 1 << 16)
    except BlockingIOError:
        return b""


@cache
def _packages() -> list[str]:
    """The installed packages' folders, the user's only where this interpreter takes them."""
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [folder for folder in dict.fromkeys([*site.getsitepackages(), *users]) if _is_dir(folder)]


def _is_dir(path: str) -> bool:
    return Path(path).is_dir()


@cache
def _roots(harness: str) -> list[str]:
    """Where the project and the harness are imported from."""
    spec = importlib.util.find_spec(harness.partition(".")[0])
    if spec is None or not spec.origin:
        raise Broken(f"no module {harness}")
    origin = Path(spec.origin).resolve()
    parent = origin.parents[1] if origin.name == "__init__.py" else origin.parent
    return list(dict.fromkeys([_ROOT, str(parent)]))


_DISTRIBUTIONS = (".dist-info", ".egg-info")
_HIDDEN = "rlvr_exp-"


@cache
def packages_digest() -> str:
    """A digest of the distributions that candidates see, for the key of cached verdicts; the same for the process's life.

    Only names of folders count: a distribution changed in place under its own name and version is not noticed.
    """
    seen = [
        sorted(name for name in os.listdir(folder) if name.endswith(_DISTRIBUTIONS) and not name.startswith(_HIDDEN))
        for folder in _packages()
    ]
    return blake2b(repr(seen).encode(), digest_size=12).hexdigest()
