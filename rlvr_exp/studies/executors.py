"""Where the runs of a study run. An executor starts commands and waits for them; what they left is others' to read."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGKILL

from rlvr_exp.config import executor as options
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.launch.children import automatic_threads
from rlvr_exp.launch.program import start_program
from rlvr_exp.records.context import RunContext

EVERY_S = 0.2
"""Between looks at what has ended, and for a request to stop."""


@dataclass(frozen=True)
class Command:
    """A command of the program, with the file that takes what it prints."""

    words: tuple[str, ...]
    printed: Path


class Local(options.Local):
    """Some at a time on this machine, by sharing out its cores."""

    def run(
        self,
        commands: Mapping[str, Command],
        context: RunContext,
        began: Callable[[str], None],
        ended: Callable[[str, int], None],
    ) -> None:
        """Run all commands; one that fails does not stop the others.

        Args:
            began, ended: called with a command's name, then with its exit code too.

        Raises:
            Interrupted: a stop was requested, and the commands that were running have stopped.
        """
        waiting, running = list(commands), dict[str, subprocess.Popen[str]]()
        shares = dict.fromkeys(range(self.jobs), "")
        with ExitStack() as stack:
            stack.callback(_kill, running)
            while waiting or running:
                if context.interrupted:
                    _stop(running)
                for slot, name in shares.items():
                    if name in running and (code := running[name].poll()) is not None:
                        del running[name]
                        ended(name, code)
                    if waiting and shares[slot] not in running:
                        name = shares[slot] = waiting.pop(0)
                        began(name)
                        running[name] = _start(commands[name], core_share(slot, self.jobs), self.jobs)
                context.heartbeat()
                time.sleep(EVERY_S)


def core_share(slot: int, slots: int) -> list[int]:
    """The cores of one of so many commands at a time; none where there are fewer cores than commands."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[slot::slots] if 1 < slots <= len(cores) else []


def _start(command: Command, cores: Sequence[int], slots: int) -> "subprocess.Popen[str]":
    # This process has a number of threads in its environment, for the whole machine: a part is the command's.
    threads = max(1, automatic_threads() // slots)
    given = int(os.environ.get("OMP_NUM_THREADS", threads))
    command.printed.parent.mkdir(parents=True, exist_ok=True)
    with open(command.printed, "a", encoding="utf-8") as out:
        return start_program(command.words, out, {**os.environ, "OMP_NUM_THREADS": str(min(given, threads))}, cores)


def _stop(running: Mapping[str, "subprocess.Popen[str]"]) -> None:
    """Raises Interrupted once all have stopped, each with what it keeps to go on from."""
    for process in running.values():
        process.send_signal(SIGINT)
    for process in running.values():
        process.wait()
    raise Interrupted("stopped; the same command with run.resume=auto goes on there")


def _kill(running: Mapping[str, "subprocess.Popen[str]"]) -> None:
    for process in running.values():
        process.send_signal(SIGKILL)
        process.wait()
