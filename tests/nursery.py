"""A process that has imported everything once and forks for each run of the program that a `nursery_client` requests.

A run is what the command line makes it, parent and ranks, but that each of them is a fork. `python -m nursery SOCKET`
serves until its standard input ends.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rlvr_exp.domains.arc.tasks import Arc

HERE = Path(__file__).parent
LIBRARIES = ("peft.tuners", "scipy.stats", "transformers.models.qwen3.modeling_qwen3")
"""What a run imports only when it needs it."""
ROOMS = "algorithms curriculum evaluation inference models rewards rollouts run stages tasks verifiers".split()


def start(path: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A nursery that listens at a socket once it has imported everything, and ends with the calling process."""
    folders = os.pathsep.join([str(HERE), str(HERE.parent)])
    command = [sys.executable, "-m", "nursery", str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, env={**env, "PYTHONPATH": folders})


class Forked:
    """A rank: what the product asks of a `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], progress: int, life: int):
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self.pid = os.fork()
        if not self.pid:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            streams = (os.open(os.devnull, os.O_RDONLY), out, out)
            arguments = [*command[3:], str(progress), str(life)]
            live(lambda: _rank(arguments), streams, env, kept={progress, life})

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if ended else None
            return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def live(
    work: Callable[[], Any],
    streams: Sequence[int],
    env: Mapping[str, str],
    folder: str = ".",
    kept: set[int] = frozenset(),
) -> NoReturn:
    """In a fork: do the work in a session of its own, with these standard streams and nothing else of the nursery's
    open, and end as the interpreter would."""
    code = 1
    try:
        os.setsid()
        for standard, there in enumerate(streams):
            os.dup2(there, standard)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) not in kept:
                _close(int(name))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = open(0, closefd=False)
        sys.stdout = open(1, "w", closefd=False)
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        code = work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # as the interpreter prints what nobody caught
        traceback.print_exc()
    finally:
        threading._shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # It was the listing's own.
        return


def _rank(arguments: list[str]) -> int:
    from rlvr_exp import child

    if "KILL_POINT" in os.environ:
        sys.path.append(str(HERE / "exact"))
        importlib.import_module("killing").install()
    return child.main(arguments)


def _program(words: list[str]) -> int:
    from rlvr_exp.launch import children
    from rlvr_exp.main import main

    children._start = Forked
    return main(words)


def _supervise(line: socket.socket) -> None:
    """Fork the program, say its process id and how it ended; kill it when its client is gone."""
    header, streams, _, _ = socket.recv_fds(line, 8, 3)
    request = json.loads(line.makefile("rb").read(int.from_bytes(header, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        live(lambda: _program(request["words"]), streams, request["env"], request["folder"])
    line.sendall(f"{child}\n".encode())
    ended = os.pidfd_open(child)
    if line in select.select([ended, line], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with line:
        line.sendall(f"{code}\n".encode())


def serve(path: str) -> None:
    os.dup2(2, 1)  # Libraries print as they are imported.
    root = HERE.parent
    files = [file for room in ROOMS for file in (root / "rlvr_exp" / room).rglob("[a-z]*.py")]
    for name in (*LIBRARIES, *sorted(".".join(file.relative_to(root).with_suffix("").parts) for file in files)):
        importlib.import_module(name)
    Arc().splits()
    gc.collect()
    gc.freeze()  # A child that collects looks at its own objects alone.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{path}.new")
        listening.listen(8)
        os.rename(f"{path}.new", path)
        while listening in select.select([listening, 0], [], [])[0]:
            line, _ = listening.accept()
            if not os.fork():
                code = 1
                try:
                    _supervise(line)
                    code = 0
                except BrokenPipeError:  # The client died with its run.
                    code = 0
                finally:
                    os._exit(code)
            line.close()


if __name__ == "__main__":
    serve(sys.argv[1])
