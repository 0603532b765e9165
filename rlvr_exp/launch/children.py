"""The child processes of a run: started, listened to, stopped on request, and never left behind.

A child has two pipes: on the first it sends progress as JSON lines (rank 0's are read); the second is its lifeline,
whose write end only the parent holds, so that the child notices the parent's death however it happens. Its output goes to
a log file. When a child of several ends badly, the others, which would wait for it forever, are killed. Runs that are part
of another, a chain's links and a study's runs, are processes of the whole program. Never imports torch.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from rlvr_exp.core.errors import DONE, FAULT
from rlvr_exp.launch.console import unread
from rlvr_exp.sandbox.isolation import kernel

LOG = "log.txt"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that request a stop; a second signal kills the run."""
GRACE_FAULT_S, GRACE_S = 3.0, 30.0
"""Seconds that the other processes have once the first has ended: after a fault or a kill to log what they saw, else to
finish (the agreed end of a run: the last file, closing a viewer)."""

Child = subprocess.Popen[bytes]
Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Ended:
    """How a run's processes ended."""

    returncode: int
    """Exit code of the rank that ended the run; negative: the signal that killed it."""
    stop_requested: bool
    """A stop was requested."""
    rank: int = 0
    """Local index of the process that failed first; 0 where none did."""


def log_name(rank: int) -> str:
    """The file name of a local process's log."""
    return LOG if rank == 0 else f"log.rank{rank}.txt"


class ProcessGroup:
    """Started processes that live and die together: the ranks of a run on a single machine. The first failure decides how
    the run ended; the others are killed after a grace period."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._ends: SimpleQueue[int] = SimpleQueue()
        """Indices of processes in the order in which they ended."""
        self._killed = False
        self._first_failure: int | None = None
        self._stop_requested = False
        self._watch: threading.Thread | None = None

    def add(self, child: Child) -> None:
        self._children.append(child)
        if self._stop_requested:
            child.send_signal(signal.SIGTERM)  # The stop was requested while processes were still being started.

    def watch(self) -> None:
        """Start waiting for the processes to end; called once all are added."""
        for place in range(len(self._children)):
            threading.Thread(target=self._wait_for, args=(place,), daemon=True).start()
        self._watch = threading.Thread(target=self._end_together, daemon=True)
        self._watch.start()

    def wait(self) -> None:
        """Return when all have ended."""
        if self._watch is not None:
            self._watch.join()

    @property
    def failed(self) -> int:
        """Index of the process that failed first by itself; 0 where none did."""
        return self._first_failure or 0

    @property
    def returncode(self) -> int:
        return self._children[self.failed].returncode

    def request_stop(self) -> None:
        self._stop_requested = True
        for child in self._children:
            child.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the living processes and wait until they have ended."""
        self._killed = True
        living = [child for child in self._children if child.poll() is None]
        for child in living:
            child.kill()
        for child in living:
            child.wait()

    def _wait_for(self, place: int) -> None:
        self._children[place].wait()
        self._ends.put(place)

    def _end_together(self) -> None:
        left, deadline = len(self._children), None
        while left:
            try:
                place = self._ends.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except Empty:
                self.kill()
                deadline = None
                continue
            left -= 1
            code = self._children[place].returncode
            if code != DONE and self._first_failure is None and not self._killed:
                self._first_failure = place
            if deadline is None and not self._killed and (code != DONE or place == 0):
                deadline = time.monotonic() + (GRACE_FAULT_S if code == FAULT or code < 0 else GRACE_S)


def run_children(
    module: str, arguments: Sequence[str], directory: Path, envs: Sequence[Mapping[str, str]], listen: Listener
) -> Ended:
    """Run `python -m module *arguments PROGRESS_FD LIFE_FD`, once for each environment, until all have ended.

    Both descriptors are numbers that the child inherits. Signals that request a stop are forwarded as SIGTERM while the
    children run; the second signal kills them.

    Args:
        directory: where their standard output and error go, named by `log_name`.
        listen: called with each event that the first child sends.
    """
    progress_in, progress_out = os.pipe()
    life_in, life_out = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    command = [sys.executable, "-m", module, *arguments]
    with ExitStack() as stack:
        stack.callback(os.close, life_in)
        stack.callback(os.close, life_out)
        events = stack.enter_context(open(progress_in, encoding="utf-8", errors="replace"))
        group = ProcessGroup()
        stop_requested = stack.enter_context(_stopping(group))
        try:
            for rank, env in enumerate(envs):
                log = directory / log_name(rank)
                group.add(_start(command, log, env, nowhere if rank else progress_out, life_in))
        finally:
            os.close(progress_out)
            os.close(nowhere)
        group.watch()
        _listen(events, listen)
        group.wait()
        return Ended(group.returncode, bool(stop_requested), group.failed)


def _start(command: Sequence[str], log: Path, env: Mapping[str, str], progress: int, life: int) -> Child:
    with open(log, "ab") as out:
        return subprocess.Popen(
            [*command, str(progress), str(life)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            pass_fds=(progress, life),
            start_new_session=True,  # A terminal's Ctrl-C reaches the parent alone, which forwards it once.
        )


@contextmanager
def _stopping(group: ProcessGroup) -> Iterator[list[int]]:
    """Forward signals while the children run; yields the list of signals received. No child is ever left running."""
    stop_requested: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stop_requested.append(number)
        if len(stop_requested) == 1:
            group.request_stop()  # Before anything is said: the terminal may be gone.
            with unread(sys.stderr), suppress(RuntimeError):  # Python refuses to print within a print.
                print("stopping: the run first keeps what it has; once more to kill it", file=sys.stderr, flush=True)
        else:
            group.kill()

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # As nohup sets it.
    previous = {number: signal.signal(number, stop) for number in heard}
    try:
        yield stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        group.kill()


def _listen(lines: Iterator[str], listen: Listener) -> None:
    for line in lines:
        if line.endswith("\n"):  # The last line of a child that was killed may be cut short.
            listen(json.loads(line))


PR_SET_PDEATHSIG = 1


def hold_lifeline(descriptor: int) -> None:
    """Tie this process, a child, to the holder of the pipe's write end: it ends at once when its parent is gone, however the
    parent ended.

    On Linux the kernel kills the child with its parent; a thread that reads the parent's pipe does so everywhere, and where
    the parent was gone before the request to the kernel.
    """
    os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch_lifeline, args=(descriptor,), name="lifeline", daemon=True).start()


def _watch_lifeline(descriptor: int) -> None:
    while os.read(descriptor, 1):  # Nothing is ever written: this returns when the parent is gone.
        continue
    if os.getpgid(0) == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def start_program(
    words: Sequence[str],
    out: int | IO[str],
    env: Mapping[str, str] | None = None,
    cores: Collection[int] = (),
) -> "subprocess.Popen[str]":
    """`python -m rlvr_exp WORDS`; it dies with the thread that starts it, and a terminal's signals do not reach it.

    Args:
        out: where its output and errors go.
        env: None: this process's.
        cores: those that it may use; empty: all that this process may.
    """

    def prepare() -> None:
        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)  # Two may not write one directory.
        if cores:
            os.sched_setaffinity(0, cores)

    return subprocess.Popen(
        [sys.executable, "-m", "rlvr_exp", *words],
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,  # A signal from the terminal reaches it once, from whoever started it.
        preexec_fn=prepare,
    )
