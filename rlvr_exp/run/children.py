"""A stage in a child process: started, listened to, asked to stop, and never left behind.

The child has two pipes: on one it sends progress as JSON lines; the other is its life line, whose write end only the
parent holds, so that the child sees the parent's death however it comes (rlvr_exp.run.lifeline). Its output goes to a
log file. Never imports torch.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlvr_exp

LOG = "log.txt"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a run to stop; a second one kills it."""

Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    returncode: int
    """Its exit code; negative: the signal that killed it."""
    asked: bool
    """It was asked to stop."""


def run_child(
    module: str, arguments: Sequence[str], directory: Path, env: Mapping[str, str], listen: Listener
) -> Ended:
    """Run `python -m module *arguments PROGRESS_FD LIFE_FD` to its end; both descriptors are numbers it inherits.

    Signals that ask for a stop are passed on as SIGTERM while it runs; the second of them kills the child.

    Args:
        directory: where its standard output and error go, as log.txt.
        listen: called with each event it sends.
    """
    progress_in, progress_out = os.pipe()
    life_in, life_out = os.pipe()
    try:
        with open(directory / LOG, "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, str(progress_out), str(life_in)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(env),
                pass_fds=(progress_out, life_in),
                start_new_session=True,  # A terminal's Ctrl-C reaches the parent alone, which passes it on once.
            )
        os.close(progress_out)
        with _stopping(child) as asked, open(progress_in, encoding="utf-8", errors="replace") as events:
            _listen(events, listen)
            child.wait()
        return Ended(child.returncode, bool(asked))
    finally:
        os.close(life_in)
        os.close(life_out)


@contextmanager
def _stopping(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass signals on while the child runs; gives the list of those that came. A child is never left running."""
    asked: list[int] = []

    def stop(number: int, _frame: object) -> None:
        asked.append(number)
        if len(asked) == 1:
            print("stopping: the run first keeps what it has; once more to kill it", file=sys.stderr, flush=True)
            child.send_signal(signal.SIGTERM)
        else:
            child.kill()

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if child.poll() is None:
            child.kill()
            child.wait()


def _listen(lines: Iterator[str], listen: Listener) -> None:
    for line in lines:
        if line.endswith("\n"):  # The last line of a child that was killed may be cut short.
            listen(json.loads(line))


def child_environment(threads: int) -> dict[str, str]:
    """The environment of a training process.

    Args:
        threads: compute threads; 0: what the caller's OMP_NUM_THREADS says, else chosen for the machine.
    """
    env = dict(os.environ)
    count = str(threads) if threads else env.get("OMP_NUM_THREADS", str(automatic_threads()))
    env.update(OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, PYTHONFAULTHANDLER="1")
    # Threads that spin while they wait take the verifiers' cores: on 2 cores a step took 20 s in place of 2.
    env.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0", GOMP_SPINCOUNT="0")
    env.setdefault("TOKENIZERS_PARALLELISM", "false")
    # What is missing was told before the start; a library that asks the network then only loses time.
    env.setdefault("HF_HUB_OFFLINE", "1")
    folders = [str(Path(rlvr_exp.__file__).parents[1]), *filter(None, [env.get("PYTHONPATH")])]
    env["PYTHONPATH"] = os.pathsep.join(folders)
    return env


def automatic_threads() -> int:
    """Physical cores less one for the verifiers; both of two, since verifiers mostly work while the trainer waits."""
    cores = physical_cores()
    return cores if cores <= 2 else cores - 1


def physical_cores() -> int:
    """Cores that this process may use, hyper-threads of one counted once."""
    siblings = set()
    for cpu in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(path.read_text() if path.is_file() else str(cpu))
    return len(siblings)
