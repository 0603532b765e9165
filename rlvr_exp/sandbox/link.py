"""The parent's end of one worker: starts the process, writes jobs, reads answers; never blocks on a candidate."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvr_exp.sandbox.jobs import Job, JobResult

_ROOT = str(Path(__file__).resolve().parents[2])
_START_S, _END_S = 30.0, 5.0
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); from rlvr_exp.sandbox import worker; sys.path.pop(0); "
    "worker.main({harness!r}, {level!r}, {hidden!r}, {processes!r})"
)


class Unavailable(Exception):
    """No worker could be started: the harness's fault, never a candidate's."""


class Link:
    """One worker. `facts` is its greeting: the level reached and what it isolates.

    Raises:
        Unavailable: it did not start at this level; the message says why.
    """

    def __init__(self, harness: str, level: str, hidden: Sequence[str], processes: int):
        boot = _BOOT.format(root=_ROOT, harness=harness, level=level, hidden=list(hidden), processes=processes)
        # -S: no site packages, no start-up hooks. The hash seed is the only variable it starts with.
        command = [sys.executable, "-S", "-s", "-P", "-B", "-c", boot]
        pipe, environment = subprocess.PIPE, {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment, cwd="/", start_new_session=True
        )
        self.pid = self._process.pid
        self.requests, self.answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.requests, False)
        os.set_blocking(self.answers, False)
        self._out, self._in = bytearray(), bytearray()
        self.broken = False
        self.facts = self._greeting()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out) and not self.broken

    def send(self, job: Job) -> None:
        """Queue a job and write what the pipe takes; `pump` writes the rest."""
        limits = job.limits
        text = json.dumps(asdict(limits) | {"size": len(job.payload)}).encode()
        self._out += len(text).to_bytes(4, "big") + text + job.payload
        self.pump()

    def pump(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(self.requests, self._out)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.broken = True

    def receive(self) -> JobResult | None:
        """The answer, once it is whole. Sets `broken` at the end of the pipe."""
        message = self._message()
        if message is None:
            return None
        header, records, log = message
        numbers = {name: header[name] for name in ("status", "cpu_s", "wall_s", "peak_kb")}
        return JobResult(header["end"], records=records, log=log, **numbers)

    def close(self) -> None:
        """End the worker and all that it runs: it leaves when its pipe closes, and is killed where it does not."""
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _message(self) -> tuple[dict[str, Any], bytes, bytes] | None:
        try:
            while data := os.read(self.answers, 1 << 18):
                self._in += data
                if len(data) < 1 << 16:
                    break
            self.broken = self.broken or not data
        except BlockingIOError:
            pass
        if len(self._in) < 4:
            return None
        start = 4 + int.from_bytes(self._in[:4], "big")
        if len(self._in) < start:
            return None
        header = json.loads(self._in[4:start])
        middle = start + header["records"]
        end = middle + header["log"]
        if len(self._in) < end:
            return None
        records, log = bytes(self._in[start:middle]), bytes(self._in[middle:end])
        del self._in[:end]
        return header, records, log

    def _greeting(self) -> dict[str, Any]:
        deadline = time.monotonic() + _START_S
        while not self.broken and time.monotonic() < deadline:
            select.select([self.answers], [], [], max(0.0, deadline - time.monotonic()))
            message = self._message()
            if message is not None:
                return message[0]
        self._process.kill()
        said = self._process.stderr.read().decode(errors="replace").strip()
        self.close()
        raise Unavailable(said.splitlines()[-1] if said else "the worker did not start")
