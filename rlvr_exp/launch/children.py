"""The child processes of a run: started, listened to, stopped on request, and never left behind.

A child has two pipes: on the first it sends progress as JSON lines (rank 0's are read); the second is its lifeline,
whose write end only the parent holds, so that the child notices the parent's death however it happens
(rlvr_exp.launch.lifeline). Its output goes to a log file. When a child of several ends badly, the others, which would wait
for it forever, are killed. Never imports torch.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlvr_exp
from rlvr_exp.launch.console import unread
from rlvr_exp.launch.process_group import Child, ProcessGroup

LOG = "log.txt"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that request a stop; a second signal kills the run."""

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


SPINS = 3000
"""Iterations for which a compute thread waits for the next parallel operation before it sleeps: 40 to 150 microseconds."""


def child_environment(threads: int, processes: int = 1) -> dict[str, str]:
    """The environment of a training process.

    Args:
        threads: compute threads; 0: the caller's OMP_NUM_THREADS, else a number chosen for the machine.
        processes: training processes that share the machine.
    """
    env = dict(os.environ)
    count = str(threads) if threads else env.get("OMP_NUM_THREADS", str(max(1, automatic_threads() // processes)))
    env.update(OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, PYTHONFAULTHANDLER="1")
    # Threads that spin for milliseconds take the verifiers' cores: on 2 cores a step took 20 s instead of 2. Threads that never
    # spin sleep between the hundreds of small operations of a decoding step: SmolLM2 sampled a third slower.
    env.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0", GOMP_SPINCOUNT=str(SPINS))
    env.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Missing artifacts were reported before the start; a library that queries the network then only loses time.
    env.setdefault("HF_HUB_OFFLINE", "1")
    folders = [str(Path(rlvr_exp.__file__).parents[1]), *filter(None, [env.get("PYTHONPATH")])]
    env["PYTHONPATH"] = os.pathsep.join(folders)
    return env


def automatic_threads() -> int:
    """Physical cores minus one for the verifiers; both of two, since verifiers mostly work while the trainer waits."""
    cores = physical_cores()
    return cores if cores <= 2 else cores - 1


def physical_cores() -> int:
    """Physical cores that this process may use; hyper-threads of the same core are counted once."""
    siblings = set()
    for cpu in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(path.read_text() if path.is_file() else str(cpu))
    return len(siblings)
