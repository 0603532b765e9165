"""A process that has imported everything once and forks for each run, which saves twelve seconds of imports in each
process.

`python -m nursery` reads requests, one JSON object per line, and answers each with the exit status of its run. A run is
the same as from the command line, parent and ranks, except that each process is a fork. A killed run affects no other
process.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
IMPORTED = (
    "deepspeed",
    "peft.tuners",
    "killing",
    "rlvr_exp.algorithms.group",
    "rlvr_exp.algorithms.ppo",
    "rlvr_exp.run.execute",
    "rlvr_exp.run.preflight",
    "rlvr_exp.sandbox.pool",
    "rlvr_exp.stages.launch",
    "rlvr_exp.stages.reinforcement",
    "rlvr_exp.stages.sft",
)
"""The imports of a run, some of them only when needed."""


class Nursery:
    """The owner's side; a context manager."""

    def __enter__(self) -> "Nursery":
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])]), "OMP_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": env}
        self._process = subprocess.Popen([sys.executable, "-m", "nursery"], **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def run(
        self, words: list[str], place: Path, env: dict[str, str], said: Path, by: int = 0, after_s: float = 0.0
    ) -> int:
        """The exit code, negative where a signal ended the run; what it printed goes to the file `said`.

        Args:
            by: a signal that its parent is sent; 0: none.
            after_s: seconds after it has taken `place/run` at which it is.
        """
        request = {"words": words, "place": str(place), "env": env, "said": str(said), "by": by, "after_s": after_s}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the nursery has ended; what it said stands above")
        return int(answer)


class Forked:
    """A rank: the part of `subprocess.Popen` that the product uses."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], progress: int, life: int):
        self.returncode: int | None = None
        self._one_at_a_time = threading.Lock()
        self.pid = os.fork()
        if not self.pid:
            _live(lambda: _rank(command, env, progress, life), log, {progress, life})

    def poll(self) -> int | None:
        with self._one_at_a_time:
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


def _live(work, log: Path, kept: set[int]) -> None:
    """Run it in a session of its own, without open files of the nursery, and exit."""
    code = 1
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for standard, there in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
            os.dup2(there, standard)
        for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
            if descriptor > 2 and descriptor not in kept:
                _close(descriptor)
        code = work()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # It was the listing's own.
        return


def _rank(command: Sequence[str], env: Mapping[str, str], progress: int, life: int) -> int:
    import killing

    from rlvr_exp.run.children import SIGNALS
    from rlvr_exp.stages import launch

    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(env)
    killing.install()
    return launch.main([*command[3:], str(progress), str(life)])


def _parent(request: Mapping) -> int:
    from rlvr_exp.main import main
    from rlvr_exp.run import children

    os.environ.update(request["env"])
    os.chdir(request["place"])
    children._start = Forked
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored where the tests run in the background.
    return main(request["words"])


def _one(request: Mapping) -> int:
    """Fork, send the stop signal where requested, wait."""
    child = os.fork()
    if not child:
        _live(lambda: _parent(request), Path(request["said"]), set())
    if request["by"]:
        while not (Path(request["place"]) / "run" / ".lock").exists() and not _ended(child):
            time.sleep(0.02)
        time.sleep(request["after_s"])
        os.kill(child, request["by"])
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Libraries print as they are imported.
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # A child that collects looks at its own objects alone.
    for line in sys.stdin:
        answers.write(f"{_one(json.loads(line))}\n")
        answers.flush()


if __name__ == "__main__":
    serve()
