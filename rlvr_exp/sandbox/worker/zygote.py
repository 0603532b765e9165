"""The zygote: forks one process, or a pair, per candidate, ends what they leave, and answers. Standard library only.

It does not read a candidate's messages. Its memory holds nothing of a job when the next job is forked.
"""

import _socket
import array
import gc
import json
import mmap
import os
import signal
import struct
import sys
import time
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rlvr_exp.sandbox.isolation import confine, isolate, kernel, process_tree
from rlvr_exp.sandbox.isolation.jail import Jail
from rlvr_exp.sandbox.isolation.process_tree import Usage
from rlvr_exp.sandbox.worker.protocol import ANSWER, ENDS, EVENT, GREETING, INLINE, REFUSED_EXIT, REQUEST, TAKEN
from rlvr_exp.sandbox.worker.watch import Bounds, Outbox, Stream, Watch, private_memory

_LENGTH = struct.Struct("!I")
_exit, _write = os._exit, os.write
"""Held here: a candidate that replaces them, in its own process, changes neither its records nor its end."""
_EXIT_FAULT = 70
_RESULTS, _PEER = 90, 91
"""Descriptors of a candidate."""
_SHORT_WAIT = 0.1
"""Share of the wall time up to which waiting for a core does not count as a cause of the timeout."""
_ENDING = 32
"""Processes above the limit that a candidate may have for a moment: ended, and not waited for yet."""
_NOTHING = (0, 0, False, 0.0, 0.0, 0, 0, 0)
"""The rest of an event that only has a number."""
_STACK = 1 << 14
_CLOEXEC = 0x40000000


@dataclass(frozen=True)
class _Request:
    cpu_s: float
    wall_s: float
    memory_mb: int
    output_kb: int
    result_kb: int
    payload: int
    peer: int
    file: int | None
    """Where the payloads are, if not in the inbox."""


class Zygote:
    """One zygote; `serve` is its life."""

    def __init__(self, program: types.ModuleType, jail: Jail, jobs: int, replies: int):
        self._program, self._jail, self._replies = program, jail, replies
        self._jobs = _socket.socket(fileno=jobs)
        self._inbox, self._outbox = private_memory(REQUEST.size + INLINE), Outbox()
        self._stacks, self._base_kb = [private_memory(_STACK), private_memory(_STACK)], 0
        self._number, self._pids = 0, []
        self._spoilt = False
        """Files of the last candidate could not be removed: there must be no further candidate."""

    def serve(self, packages: Sequence[str]) -> NoReturn:
        """Send a greeting, then one answer a job until the pool closes the queue."""
        try:
            isolate.settle(self._jail, packages)
        except (isolate.Refused, OSError) as fault:
            os.write(2, str(fault).encode())
            os._exit(REFUSED_EXIT)
        facts = json.dumps({"level": self._jail.level, "isolated": self._jail.facts}).encode()
        self._outbox.reserve(0, 0)
        self._write([self._event(GREETING, records=len(facts)), facts])
        hidden = {"rlvr_exp", self._program.__name__.partition(".")[0]}
        for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
            del sys.modules[name]  # a candidate that imports the project finds nothing
        if hasattr(self._program, "rehearse"):
            self._program.rehearse()
        gc.collect()
        gc.freeze()
        gc.disable()
        table = self._jail.tree
        self._base_kb = table.usage([table.own_id()]).memory_kb
        answer: list[Any] = []
        while not self._spoilt:
            request = self._receive(wait=not answer)
            if request is not None:
                answer.append(EVENT.pack(TAKEN, self._number, *_NOTHING))
            self._write(answer)
            answer.clear()  # its buffers are reused, and no answer may be in memory when the next job forks
            if request is not None:
                answer += self._judge(request)
        self._write(answer)
        os._exit(_EXIT_FAULT)

    def _receive(self, wait: bool) -> _Request | None:
        """The next job; None where there is none and `wait` is false."""
        flags = _CLOEXEC | (0 if wait else _socket.MSG_DONTWAIT)
        try:
            size, extra, _, _ = self._jobs.recvmsg_into([self._inbox], _socket.CMSG_SPACE(4), flags)
        except BlockingIOError:
            return None
        if size == 0:
            os._exit(0)
        files = array.array("i", extra[0][2]) if extra else [None]
        self._number, *limits = REQUEST.unpack_from(self._inbox)
        return _Request(*limits, files[0])

    def _write(self, parts: list[Any]) -> None:
        parts = [memoryview(part) for part in parts]
        while parts:
            try:
                written = os.writev(self._replies, parts)
            except BrokenPipeError:
                os._exit(0)
            while parts and written >= len(parts[0]):
                written -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][written:]

    def _judge(self, request: _Request) -> list[Any]:
        try:
            return self._run(request)
        except (OSError, kernel.Refused) as fault:  # no memory or descriptors left: not the candidate's fault
            self._end_tree()
            self._clean()
            reason = str(fault).encode()
            return [self._event(ANSWER, ENDS.index("unavailable"), log=len(reason)), reason]
        finally:
            if request.file is not None:
                os.close(request.file)

    def _run(self, request: _Request) -> list[Any]:
        self._outbox.reserve(request.result_kb << 10, request.output_kb << 10)
        started = time.monotonic()
        results, log = self._start(request)
        late_s = time.monotonic() - started
        streams = [
            Stream(results, self._outbox.records, request.result_kb << 10),
            Stream(log, self._outbox.log, request.output_kb << 10),
        ]
        try:
            watch = Watch(self._pids, streams, self._jobs.fileno(), self._bounds(request, started))
        except OSError:
            for fd in (results, log):
                os.close(fd)
            raise
        try:
            watch.until_exit_or_limit()
            idled = watch.end == "wall" and self._idled(request, watch, late_s)
            status, cpu_s, peak_kb = self._end_tree()
            watch.drain()
        finally:
            watch.close()
        self._clean()
        end = watch.end or ("cpu" if cpu_s > request.cpu_s else "exit")
        wall_s = time.monotonic() - started
        sizes = [stream.size for stream in streams]
        head = self._event(ANSWER, ENDS.index(end), status, idled, cpu_s, wall_s, peak_kb, *sizes)
        return [head, *(stream.data for stream in streams)]

    def _clean(self) -> None:
        try:
            for scratch in self._jail.scratch:
                scratch.clean()
        except (OSError, kernel.Refused) as fault:
            self._spoilt = True
            _write(2, f"a candidate's folder could not be emptied: {fault}".encode())

    def _idled(self, request: _Request, watch: Watch, late_s: float) -> bool:
        """Whether a busy machine certainly did not cause the timeout: known for a single process that is still
        alive."""
        if request.peer or self._jail.processes or self._jail.filter is None:
            return False
        waited_s = self._jail.tree.waited_s(watch.exit, watch.cpu_s)
        return waited_s is not None and late_s + waited_s < _SHORT_WAIT * request.wall_s

    def _bounds(self, request: _Request, started: float) -> Bounds:
        roles = 1 + bool(request.peer)
        uncounted = self._jail.level == "process" and os.geteuid() == 0  # root has no limit on its processes
        several = roles > 1 or self._jail.processes > 0 or uncounted or self._jail.filter is None
        # Address space granted to libraries can be filled with shared memory, which is nobody's own.
        roomy = self._jail.packages
        memory_kb = (request.memory_mb << 10) + self._base_kb * (roles + self._jail.processes)
        processes = roles + self._jail.processes
        tasks = confine.TASKS * roles + self._jail.processes
        tree = self._usage if several or roomy else None
        return Bounds(request.cpu_s, started + request.wall_s, memory_kb, tasks, processes + _ENDING, tree)

    def _usage(self) -> Usage:
        table = self._jail.tree
        return table.usage(table.below(table.own_id()))

    def _start(self, request: _Request) -> tuple[int, int]:
        """The candidate's process, and its peer's where there is one: the results' and the log's pipe."""
        results, log = os.pipe(), os.pipe()
        ends = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM) if request.peer else ()
        try:
            for role in range(2 if ends else 1):
                pid = self._fork(role)
                if pid == 0:
                    channel = ends[role].fileno() if ends else None
                    self._become_candidate(request, role, None if role else results[1], log[1], channel)
                self._pids.append(pid)
        except (OSError, kernel.Refused):
            for fd in (results[0], log[0]):
                os.close(fd)
            raise
        finally:
            for fd in (results[1], log[1]):
                os.close(fd)
            for end in ends:
                end.close()
            self._wipe(request)
        return results[0], log[0]

    def _fork(self, role: int) -> int:
        """A candidate's process; at the strictest level the second process of its own pid namespace, after a guard
        that is the first: signals that a first process would not get reach the candidate."""
        if self._jail.own_pids is None:
            return kernel.fork()
        kernel.unshare(kernel.NEWPID)
        try:
            kernel.start_guard(self._stacks[role])
            return kernel.fork()
        finally:
            if os.getpid() == 1:
                kernel.join(self._jail.own_pids, kernel.NEWPID)

    def _wipe(self, request: _Request) -> None:
        """The forks have their payloads; the next candidate's fork must not find them."""
        used = REQUEST.size + (request.payload + request.peer if request.file is None else 0)
        self._inbox[:used] = bytes(used)

    def _become_candidate(
        self, request: _Request, role: int, results: int | None, log: int, channel: int | None
    ) -> NoReturn:
        code = _EXIT_FAULT
        try:
            os.setsid()
            self._number = 0
            payload = self._payload(request, role)
            os.dup2(log, 1)
            os.dup2(log, 2)
            kept = _place({_RESULTS: results, _PEER: channel})
            confine.confine(self._jail, bool(request.peer), request.memory_mb, request.cpu_s)
            _close_others(kept)
            gc.enable()
            if role:
                self._program.serve(payload, _PEER)
            elif channel is None:
                self._program.run(payload, _send)
            else:
                self._program.run(payload, _send, _PEER)
            code = 0
        except BaseException as fault:  # no exception may reach the zygote's own code
            _write(2, f"{type(fault).__name__}: {fault}"[:400].encode(errors="replace"))
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                _exit(code)

    def _payload(self, request: _Request, role: int) -> bytes:
        """In the fork: its own part; the other's is wiped."""
        start, size = (request.payload, request.peer) if role else (0, request.payload)
        if request.file is not None:
            parts, at = [], start
            while at < start + size:
                parts.append(os.pread(request.file, start + size - at, at))
                at += len(parts[-1])
            return b"".join(parts)
        payload = self._inbox[REQUEST.size + start : REQUEST.size + start + size]
        self._inbox.madvise(mmap.MADV_DONTNEED)
        return payload

    def _end_tree(self) -> tuple[int, float, int]:
        """Kill and reap the candidate's processes: its status, CPU seconds and peak memory of all of them."""
        status, cpu_s, peak_kb = 0, 0.0, 0
        first, known = (self._pids or [0])[0], self._pids
        self._pids = []
        for pid in known:  # not reaped yet, so that the ids are theirs
            process_tree.kill_group(pid)
        while True:
            self._kill_all()
            try:
                while True:
                    reaped, how, usage = os.wait3(os.WNOHANG)
                    if reaped == 0:
                        break
                    cpu_s += usage.ru_utime + usage.ru_stime
                    peak_kb = max(peak_kb, usage.ru_maxrss)
                    status = os.waitstatus_to_exitcode(how) if reaped == first else status
            except ChildProcessError:
                return status, cpu_s, peak_kb
            time.sleep(0.0005)

    def _event(
        self,
        kind: int,
        end: int = 0,
        status: int = 0,
        idled: bool = False,
        cpu_s: float = 0.0,
        wall_s: float = 0.0,
        peak_kb: int = 0,
        records: int = 0,
        log: int = 0,
    ) -> memoryview:
        """Pack an event in memory that forks do not see."""
        head = self._outbox.head
        EVENT.pack_into(head, 0, kind, self._number, end, status, idled, cpu_s, wall_s, peak_kb, records, log)
        return head

    def _kill_all(self) -> None:
        if self._jail.owns_pids:
            process_tree.send(-1, signal.SIGKILL)
        else:
            process_tree.kill_below(self._jail.tree)


def _place(wanted: dict[int, int | None]) -> list[int]:
    """Move each descriptor to its number; returns the numbers, with those of the standard streams."""
    kept = {number: fd for number, fd in wanted.items() if fd is not None}
    for number, fd in kept.items():
        os.dup2(fd, number)
    return [0, 1, 2, *kept]


def _close_others(kept: list[int]) -> None:
    for low, high in zip(kept, [*kept[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)


def _send(record: bytes) -> None:
    data = memoryview(_LENGTH.pack(len(record)) + record)
    while data:
        data = data[_write(_RESULTS, data) :]
