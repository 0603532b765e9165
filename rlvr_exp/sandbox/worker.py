"""A worker: one supervisor, which watches the trainer, and one zygote, which forks a process per candidate.

Started by the pool as a fresh interpreter; never a fork of the trainer. Jobs come one at a time on stdin, replies leave
on stdout, both as frames: 4 bytes of length, JSON header, then the raw bytes that the header announces. The zygote does
not read what a candidate sends: it carries bytes, counts them, watches the clocks, and kills. Standard library only.
"""

import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import struct
import sys
import time
import types
from typing import Any

from rlvr_exp.sandbox import isolate, view
from rlvr_exp.sandbox.isolate import Jail

_LENGTH = struct.Struct("!I")
_TICK_S = 0.05
_EXIT_FAULT = 70


def main(harness: str, level: str, hidden: list[str], processes: int) -> None:
    """Never returns normally: the supervisor leaves when the zygote or the trainer is gone."""
    trainer = os.getppid()
    jobs, replies = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    program = importlib.import_module(harness)
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        jail = isolate.enter(level, processes)
    except (isolate.Refused, OSError) as fault:
        sys.exit(f"{level}: {fault}")
    zygote = os.fork()
    if zygote == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        _Zygote(program, jail, jobs, replies).serve(hidden)
    os.close(jobs)
    os.close(replies)
    _supervise(zygote, trainer, jail)


def _supervise(zygote: int, trainer: int, jail: Jail) -> None:
    """Leave with the zygote; end it when the trainer is gone. Polling, since a death signal would follow a thread."""
    while True:
        signal.sigtimedwait([signal.SIGCHLD], 1.0)
        if os.waitpid(zygote, os.WNOHANG)[0]:
            break
        if os.getppid() != trainer:
            os.kill(zygote, signal.SIGKILL)
            os.waitpid(zygote, 0)
            break
    if not jail.owns_pids:
        _kill_below()  # what a zygote leaves that was killed at work is ours by adoption
    if jail.scratch:
        shutil.rmtree(jail.scratch, ignore_errors=True)
    os._exit(0)


class _Zygote:
    def __init__(self, program: types.ModuleType, jail: Jail, jobs: int, replies: int):
        self._program, self._jail, self._jobs, self._replies = program, jail, jobs, replies
        self._count = 0

    def serve(self, hidden: list[str]) -> None:
        """Hello, then one reply a job until the pool closes the pipe."""
        try:
            isolate.settle(self._jail, hidden)
        except (isolate.Refused, OSError) as fault:
            os.write(2, f"{self._jail.level}: {fault}".encode())
            os._exit(_EXIT_FAULT)
        self._reply({"level": self._jail.level, "isolated": self._jail.facts})
        for name in [name for name in sys.modules if name.partition(".")[0] == "rlvr_exp"]:
            del sys.modules[name]  # a candidate that imports the project finds nothing
        gc.collect()
        gc.freeze()
        gc.disable()
        while True:
            header = json.loads(self._read(_LENGTH.unpack(self._read(_LENGTH.size))[0]))
            payload = self._read(header["size"])
            self._reply(*self._judge(header, payload))

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self._jobs, min(size, 1 << 20))
            if not part:
                os._exit(0)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _reply(self, header: dict[str, Any], records: bytes = b"", log: bytes = b"") -> None:
        text = json.dumps(header | {"records": len(records), "log": len(log)}).encode()
        data = memoryview(_LENGTH.pack(len(text)) + text + records + log)
        while data:
            try:
                data = data[os.write(self._replies, data) :]
            except BrokenPipeError:
                os._exit(0)

    def _judge(self, limits: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes, bytes]:
        try:
            return self._run(limits, payload)
        except OSError as fault:  # no memory or descriptors left for a fork: ours, not the candidate's
            header = {"end": "unavailable", "status": 0, "cpu_s": 0.0, "wall_s": 0.0, "peak_kb": 0}
            return header, b"", str(fault).encode()

    def _run(self, limits: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes, bytes]:
        self._count += 1
        folder = os.path.join(self._jail.scratch, f"c{self._count}")
        os.mkdir(folder, 0o700)
        if self._jail.uid is not None:
            os.chown(folder, self._jail.uid, self._jail.uid)
        results, log = os.pipe(), os.pipe()
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            self._become_candidate(limits, payload, folder, results[1], log[1])
        os.close(results[1])
        os.close(log[1])
        watch = _Watch(pid, results[0], log[0], self._jobs, limits, started)
        try:
            watch.until_exit_or_limit()
            status, cpu_s, peak_kb = self._end_tree(pid)
            watch.drain()
        finally:
            watch.close()
        self._clean()
        end = watch.end or ("cpu" if cpu_s > limits["cpu_s"] else "exit")
        wall_s = time.monotonic() - started
        header = {"end": end, "status": status, "cpu_s": cpu_s, "wall_s": wall_s, "peak_kb": peak_kb}
        return header, bytes(watch.records), bytes(watch.log)

    def _become_candidate(self, limits: dict[str, Any], payload: bytes, folder: str, results: int, log: int) -> None:
        code = _EXIT_FAULT
        try:
            os.setsid()
            os.dup2(results, 90)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.closerange(3, 90)
            os.closerange(91, 1024)
            os.chdir(folder)
            # Open files outlive the limit on their number; the results' pipe keeps its high number.
            isolate.confine(self._jail, limits["memory_mb"], limits["cpu_s"], limits["result_kb"] << 10)
            gc.enable()
            self._program.run(payload, _send)
            code = 0
        except BaseException as fault:  # nothing may climb back into the zygote's own code
            os.write(2, f"{type(fault).__name__}: {fault}"[:400].encode(errors="replace"))
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def _end_tree(self, pid: int) -> tuple[int, float, int]:
        """Kill and reap everything the candidate started: its status, CPU seconds and peak memory of all of it."""
        status, cpu_s, peak_kb = 0, 0.0, 0
        while True:
            self._kill_all()
            try:
                while True:
                    reaped, how, usage = os.wait3(os.WNOHANG)
                    if reaped == 0:
                        break
                    cpu_s += usage.ru_utime + usage.ru_stime
                    peak_kb = max(peak_kb, usage.ru_maxrss)
                    status = os.waitstatus_to_exitcode(how) if reaped == pid else status
            except ChildProcessError:
                return status, cpu_s, peak_kb
            time.sleep(0.0005)

    def _kill_all(self) -> None:
        if self._jail.owns_pids:
            _signal(-1, signal.SIGKILL)
        else:
            _kill_below()

    def _clean(self) -> None:
        """Empty the scratch, whatever the candidate did to its folder's modes."""
        for left in os.listdir(self._jail.scratch):
            path = os.path.join(self._jail.scratch, left)
            if left == view.LIBRARY:
                continue
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
                continue
            shutil.rmtree(path, ignore_errors=True)
            if os.path.lexists(path):
                _open_folders(path)
                shutil.rmtree(path)


class _Watch:
    """One candidate's pipes and clocks. `end` is the limit that ended it: "cpu", "wall", "output"; else None."""

    def __init__(self, pid: int, results: int, log: int, jobs: int, limits: dict[str, Any], started: float):
        self._pid, self._results, self._log, self._jobs = pid, results, log, jobs
        self._caps = {results: limits["result_kb"] << 10, log: limits["output_kb"] << 10}
        self._cpu_s, self._deadline = limits["cpu_s"], started + limits["wall_s"]
        self.records, self.log = bytearray(), bytearray()
        self.end: str | None = None
        self._exit = os.pidfd_open(pid)
        self._poll = select.poll()
        for fd in (results, log, self._exit):
            self._poll.register(fd, select.POLLIN)
        self._poll.register(jobs, 0)
        os.set_blocking(results, False)
        os.set_blocking(log, False)

    def until_exit_or_limit(self) -> None:
        while self.end is None:
            for fd, event in self._poll.poll(self._patience() * 1000):
                if fd == self._exit:
                    return
                if fd == self._jobs and event & (select.POLLHUP | select.POLLERR):
                    os._exit(0)
                if fd in (self._results, self._log) and not self._take(fd):
                    self._poll.unregister(fd)
            self._check_limits()

    def _patience(self) -> float:
        return max(0.001, min(_TICK_S, self._deadline - time.monotonic()))

    def _check_limits(self) -> None:
        if self.end is not None:
            return
        if time.clock_gettime((~self._pid << 3) | 2) > self._cpu_s:
            self.end = "cpu"
        elif time.monotonic() > self._deadline:
            self.end = "wall"

    def _take(self, fd: int) -> bool:
        """Read what is there; False at the end of the pipe."""
        into, cap = self.records if fd == self._results else self.log, self._caps[fd]
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if len(into) + len(data) > cap:
            self.end = "output"
            data = data[: cap - len(into)]
        into += data
        return bool(data)

    def drain(self) -> None:
        """What the tree wrote before it ended; nobody is left to write more."""
        for fd in (self._results, self._log):
            before = -1
            while before < len(self.records) + len(self.log) and self.end != "output":
                before = len(self.records) + len(self.log)
                self._take(fd)

    def close(self) -> None:
        for fd in (self._results, self._log, self._exit):
            os.close(fd)


def _send(record: bytes) -> None:
    data = memoryview(_LENGTH.pack(len(record)) + record)
    while data:
        data = data[os.write(90, data) :]


def _open_folders(path: str) -> None:
    os.chmod(path, 0o700)
    for parent, folders, _ in os.walk(path):
        for folder in (os.path.join(parent, name) for name in folders):
            if not os.path.islink(folder):
                os.chmod(folder, 0o700)


def _kill_below() -> None:
    """Every descendant: stopped first and killed after, since a fork bomb killed one by one grows faster than it ends."""
    stopped: set[int] = set()
    while fresh := set(isolate.descendants_of(os.getpid())) - stopped:
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
