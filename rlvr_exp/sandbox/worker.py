"""A worker: a supervisor that watches the trainer, and a zygote that forks a process per candidate.

The pool starts it as a fresh interpreter; it is never a fork of the trainer. A job is one packet on a socket that all
workers of a pool read from, so that a free worker takes the next job; long payloads travel in a memory file with their
packet. Answers leave on a pipe per worker: one fixed head, then records and log.

The zygote forks one process, or a pair, per candidate, ends their leftovers, and answers. It carries and counts a
candidate's messages and never reads them. Its memory holds nothing of a job when the next job is forked: messages are
kept in memory that forks do not get, so that no later candidate finds them. Standard library only.
"""

import _socket
import array
import fcntl
import gc
import importlib
import json
import mmap
import os
import select
import signal
import struct
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rlvr_exp.sandbox.isolation import files, jail, kernel, process_tree
from rlvr_exp.sandbox.isolation.process_tree import Usage

REQUEST = struct.Struct("!QddIIIII")
"""Number, CPU and wall seconds, MB of memory, KB of output and of results, bytes of the payload and of the peer's."""
EVENT = struct.Struct("!BQBi?ddIII")
"""Kind, the job's number, end, status, whether it idled, CPU and wall seconds, peak KB, bytes of the records and
the log that follow."""
GREETING, TAKEN, ANSWER = range(3)
"""Kinds of event: the worker has greeted (records: its facts, JSON); it began a job; the job has ended."""
ENDS = ("exit", "cpu", "wall", "memory", "output", "unavailable")
INLINE = 1 << 15
"""Largest payload, in bytes, of a job in one packet."""
REFUSED_EXIT = 71
"""Exit code of a worker whose level this machine refuses."""
_KEPT = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LENGTH = struct.Struct("!I")
_exit, _write = os._exit, os.write
"""Held here: a candidate that replaces them, in its own process, changes neither its records nor its end."""
_EXIT_FAULT = 70
_RESULTS, _PEER = 90, 91
"""Descriptors of a candidate."""
_SHORT_WAIT = 0.1
"""Largest share of the wall time that a wait for a core may take without counting as a cause of the timeout."""
_ENDING = 32
"""Processes above the limit that a candidate may have for a moment: ended, and not waited for yet."""
_STACK = 1 << 14
_CLOEXEC = 0x40000000
_TICK_S, _QUICK_MS = 0.05, 4
_CHUNK = 1 << 16
_WIPE_ON_FORK = 18
"""MADV_WIPEONFORK: forks see zeros."""


def main(
    harness: str, level: str, packages: Sequence[str], processes: int, roots: Sequence[str], temporary: str
) -> None:
    """Never returns normally: the supervisor leaves when the zygote or the trainer is gone."""
    trainer = os.getppid()
    jobs, replies = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    program = _load(harness, packages, roots)
    sys.executable = files.interpreter()  # the name that candidates see
    sys.orig_argv[:] = [sys.executable]  # not how this worker was started, and from where
    if processes and packages:
        os.environ["PYTHONPATH"] = os.pathsep.join(packages)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGTERM])
    try:
        own = jail.enter(level, processes, temporary)
    except (kernel.Refused, OSError) as fault:
        os.write(2, str(fault).encode())
        sys.exit(REFUSED_EXIT)
    zygote = os.fork()
    if zygote == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD, signal.SIGTERM])
        Zygote(program, own, jobs, replies).serve(packages)
    os.close(jobs)
    os.close(replies)
    _supervise(zygote, trainer, own)


def _load(harness: str, packages: Sequence[str], roots: Sequence[str]) -> types.ModuleType:
    """The harness, with the path that candidates will have: the standard library, and the packages if allowed."""
    sys.path += packages
    program = importlib.import_module(harness)
    sys.path[:] = [entry for entry in sys.path if entry not in roots]
    kept = {name: os.environ[name] for name in _KEPT if packages and name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit(f"the harness {harness} starts threads when it is imported: a fork would lose them")
    return program


def _supervise(zygote: int, trainer: int, own: jail.Jail) -> NoReturn:
    """Exit with the zygote; end it on request or when the trainer is gone. Polling, since a death signal would follow
    the trainer's thread, not its process."""
    while True:
        received = signal.sigtimedwait([signal.SIGCHLD, signal.SIGTERM], 1.0)
        ended, status = os.waitpid(zygote, os.WNOHANG)
        if ended:
            break
        if own.parent and received is None:
            files.tidy(own.parent)
        if os.getppid() != trainer or (received is not None and received.si_signo == signal.SIGTERM):
            os.kill(zygote, signal.SIGKILL)
            _, status = os.waitpid(zygote, 0)
            break
    if not own.owns_pids:
        # Processes of a killed zygote are adopted by this supervisor.
        process_tree.kill_below(process_tree.Processes())
    if own.parent:
        files.remove_parent(own.parent)
    os._exit(max(0, os.waitstatus_to_exitcode(status)))


def _private_memory(size: int) -> mmap.mmap:
    """Zeros, not shared with forks."""
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class Outbox:
    """Memory for one answer: the head, then records, then log; the two with room for one more read."""

    def __init__(self) -> None:
        self._map, self._size = _private_memory(mmap.PAGESIZE), 0
        self.head = self.records = self.log = memoryview(b"")

    def reserve(self, records: int, log: int) -> None:
        """Empty room for that many bytes of each. Views handed out before must not be used any more."""
        first = EVENT.size
        middle = first + records + _CHUNK
        wanted = middle + log + _CHUNK
        room = _private_memory(wanted) if wanted > self._size else None
        for part in (self.head, self.records, self.log):
            part.release()
        if room is not None:
            self._map.close()
            self._map, self._size = room, wanted
            room.madvise(_WIPE_ON_FORK)
        view = memoryview(self._map)
        self.head, self.records, self.log = view[:first], view[first:middle], view[middle:wanted]


class Stream:
    """A pipe's reading end and the memory that its bytes go to."""

    def __init__(self, fd: int, into: memoryview, cap: int):
        self.fd, self.size = fd, 0
        self._into, self._cap = into, cap
        os.set_blocking(fd, False)

    @property
    def data(self) -> memoryview:
        return self._into[: self.size]

    def take(self) -> tuple[bool, bool]:
        """Read the available bytes: whether more may come, and whether it was more than allowed."""
        try:
            got = os.readv(self.fd, [self._into[self.size : self.size + _CHUNK]])
        except BlockingIOError:
            return True, False
        self.size += got
        over = self.size > self._cap
        self.size = min(self.size, self._cap)
        return got > 0, over


@dataclass(frozen=True)
class Bounds:
    """Limits of one candidate. `tree` returns the usage of all its processes, if no limit of one process holds it."""

    cpu_s: float
    deadline: float
    memory_kb: int
    tasks: int
    processes: int
    tree: Callable[[], Usage] | None


class Watch:
    """One candidate's pipes and clocks. `end` is the limit that ended the candidate: "cpu", "wall", "memory", "output";
    else None. `exit`: its pidfd."""

    def __init__(self, pids: list[int], streams: list[Stream], jobs: int, bounds: Bounds):
        self._pids, self._streams, self._jobs = pids, {stream.fd: stream for stream in streams}, jobs
        self._bounds = bounds
        self._cpu_seen = dict.fromkeys(pids, 0.0)
        self.end: str | None = None
        self._look_at = time.monotonic() + _TICK_S
        self.exit = os.pidfd_open(pids[0])
        self._first, self._poll = select.poll(), select.poll()
        self._first.register(self.exit, select.POLLIN)
        for fd in (*self._streams, self.exit):
            self._poll.register(fd, select.POLLIN)
        self._poll.register(jobs, 0)

    def until_exit_or_limit(self) -> None:
        # Most candidates end at once, with less output than a pipe holds: one wait, no reading in between.
        if self._first.poll(_QUICK_MS):
            return
        while self.end is None:
            patience_s = max(0.001, min(_TICK_S, self._bounds.deadline - time.monotonic()))
            for fd, event in self._poll.poll(patience_s * 1000):
                if fd == self.exit:
                    return
                if fd == self._jobs and event & (select.POLLHUP | select.POLLERR):
                    os._exit(0)
                if fd in self._streams and not self._take(fd):
                    self._poll.unregister(fd)
            self._check_limits()

    def drain(self) -> None:
        """Read what the tree wrote before it ended; nobody is left to write more."""
        for stream in self._streams.values():
            before = -1
            while before < stream.size and self.end != "output":
                before = stream.size
                self._take(stream.fd)

    def close(self) -> None:
        os.close(self.exit)
        for fd in self._streams:
            os.close(fd)

    @property
    def cpu_s(self) -> float:
        for pid in self._pids:
            try:
                self._cpu_seen[pid] = time.clock_gettime((~pid << 3) | 2)
            except OSError:  # a peer that has ended
                pass
        return sum(self._cpu_seen.values())

    def _check_limits(self) -> None:
        if self.end is not None:
            return
        bounds, now = self._bounds, time.monotonic()
        used = None
        if bounds.tree is not None and now >= self._look_at:  # reading the usage costs too much for each printed line
            used, self._look_at = bounds.tree(), now + _TICK_S / 2
        if max(self.cpu_s, used.cpu_s if used else 0.0) > bounds.cpu_s:
            self.end = "cpu"
        elif now > bounds.deadline:
            self.end = "wall"
        elif used is not None and (
            used.memory_kb > bounds.memory_kb or used.tasks > bounds.tasks or used.processes > bounds.processes
        ):
            self.end = "memory"

    def _take(self, fd: int) -> bool:
        more, over = self._streams[fd].take()
        if over:
            self.end = "output"
        return more


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
    """Holds the payloads, if they are not in the inbox."""


class Zygote:
    """One zygote; `serve` is its life."""

    def __init__(self, program: types.ModuleType, own: jail.Jail, jobs: int, replies: int):
        self._program, self._jail, self._replies = program, own, replies
        self._jobs = _socket.socket(fileno=jobs)
        self._inbox, self._outbox = _private_memory(REQUEST.size + INLINE), Outbox()
        self._stacks, self._base_kb = [_private_memory(_STACK), _private_memory(_STACK)], 0
        self._number, self._pids = 0, []
        self._spoilt = False
        """Files of the last candidate could not be removed: there must be no further candidate."""

    def serve(self, packages: Sequence[str]) -> NoReturn:
        """Send a greeting, then one answer a job until the pool closes the queue."""
        try:
            jail.settle(self._jail, packages)
        except (kernel.Refused, OSError) as fault:
            os.write(2, str(fault).encode())
            os._exit(REFUSED_EXIT)
        facts = json.dumps({"level": self._jail.level, "isolated": self._jail.facts}).encode()
        self._outbox.reserve(0, 0)
        self._reply([self._event(GREETING, records=len(facts)), facts])
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
                answer.append(EVENT.pack(TAKEN, self._number, 0, 0, False, 0.0, 0.0, 0, 0, 0))
            self._reply(answer)
            answer.clear()  # its buffers are reused, and no answer may be in memory when the next job forks
            if request is not None:
                answer += self._judge(request)
        self._reply(answer)
        os._exit(_EXIT_FAULT)

    def _receive(self, wait: bool) -> _Request | None:
        """The next job; None if there is none and `wait` is false."""
        flags = _CLOEXEC | (0 if wait else _socket.MSG_DONTWAIT)
        try:
            size, extra, _, _ = self._jobs.recvmsg_into([self._inbox], _socket.CMSG_SPACE(4), flags)
        except BlockingIOError:
            return None
        if size == 0:
            os._exit(0)
        descriptors = array.array("i", extra[0][2]) if extra else [None]
        self._number, *limits = REQUEST.unpack_from(self._inbox)
        return _Request(*limits, descriptors[0])

    def _reply(self, parts: list[Any]) -> None:
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

    def _bounds(self, request: _Request, started: float) -> Bounds:
        own, roles = self._jail, 1 + bool(request.peer)
        uncounted = own.level == "process" and os.geteuid() == 0  # root has no limit on its processes
        several = roles > 1 or own.processes > 0 or uncounted or own.filter is None
        # Address space granted to libraries can be filled with shared memory, which is nobody's own.
        roomy = own.packages
        memory_kb = (request.memory_mb << 10) + self._base_kb * (roles + own.processes)
        tasks, processes = jail.TASKS * roles + own.processes, roles + own.processes + _ENDING
        tree = (lambda: own.tree.usage(own.tree.below(own.tree.own_id()))) if several or roomy else None
        return Bounds(request.cpu_s, started + request.wall_s, memory_kb, tasks, processes, tree)

    def _idled(self, request: _Request, watch: Watch, late_s: float) -> bool:
        """Whether a busy machine certainly did not cause the timeout: known for a single process that is still
        alive."""
        if request.peer or self._jail.processes or self._jail.filter is None:
            return False
        waited_s = self._jail.tree.waited_s(watch.exit, watch.cpu_s)
        return waited_s is not None and late_s + waited_s < _SHORT_WAIT * request.wall_s

    def _clean(self) -> None:
        try:
            for scratch in self._jail.scratch:
                scratch.clean()
        except (OSError, kernel.Refused) as fault:
            self._spoilt = True
            _write(2, f"a candidate's folder could not be emptied: {fault}".encode())

    def _start(self, request: _Request) -> tuple[int, int]:
        """Start the candidate's process, and its peer's if it has one. Return the results' and the log's pipe."""
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
            # The forks have their payloads; the next candidate's fork must not find them.
            used = REQUEST.size + (request.payload + request.peer if request.file is None else 0)
            self._inbox[:used] = bytes(used)
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
            kept = [0, 1, 2]
            for fd, place in ((results, _RESULTS), (channel, _PEER)):
                if fd is not None:
                    kept.append(os.dup2(fd, place))
            jail.confine(self._jail, bool(request.peer), request.memory_mb, request.cpu_s)
            for low, high in zip(kept, [*kept[1:], 1 << 20], strict=True):
                os.closerange(low + 1, high)
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
            if self._jail.owns_pids:
                process_tree.send(-1, signal.SIGKILL)
            else:
                process_tree.kill_below(self._jail.tree)
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


def _send(record: bytes) -> None:
    data = memoryview(_LENGTH.pack(len(record)) + record)
    while data:
        data = data[_write(_RESULTS, data) :]
