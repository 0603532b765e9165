"""Where the runs of a study run. An executor starts commands and waits for them; what they left is others' to read."""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Generic, TypeVar

from rlvr_exp.config import study as options
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.launch.children import start_program
from rlvr_exp.launch.process_environment import automatic_threads
from rlvr_exp.records.context import RunContext


@dataclass(frozen=True)
class Command:
    """A command of the program, with the file that takes what it prints."""

    words: tuple[str, ...]
    printed: Path


class Feed(ABC):
    """What an executor runs: which command comes next may depend on how those before it ended."""

    @abstractmethod
    def next(self) -> tuple[str, Command] | None:
        """A command that is started now, with its name; None: none before one that runs has ended, or none any more."""

    @abstractmethod
    def ended(self, name: str, code: int) -> None:
        """It has ended with this exit code."""

    def unwanted(self) -> Collection[str]:
        """Those that run and are not to go on."""
        return ()


Handle = TypeVar("Handle")


class Executor(ABC, Generic[Handle]):
    """So many commands at a time. A subclass starts one and says how it ended."""

    jobs: int
    every_s: float
    """Between looks at what has ended, and for a request to stop."""

    def run(self, feed: Feed, context: RunContext) -> None:
        """Run what the feed has; a command that fails does not stop the others.

        Raises:
            InputError: it cannot run any.
            Interrupted: a stop was requested, and the commands that were running have stopped.
        """
        self.begin(context.directory)
        running, slots, stopping = dict[str, Handle](), dict[str, int](), set[str]()
        try:
            while True:
                if context.interrupted:
                    self._stop_all([*running.values()])
                for name in list(running):
                    if (code := self.code_of(running[name])) is not None:
                        del running[name], slots[name]
                        feed.ended(name, code)
                for name in {*feed.unwanted()} & {*running} - stopping:
                    stopping.add(name)
                    self.stop(running[name])
                while len(running) < self.jobs and (found := feed.next()) is not None:
                    name, command = found
                    slots[name] = next(slot for slot in range(self.jobs) if slot not in slots.values())
                    running[name] = self.start(command, slots[name])
                if not running:
                    return
                context.heartbeat()
                time.sleep(self.every_s)
        finally:
            self.abandon([*running.values()])

    def _stop_all(self, running: Sequence[Handle]) -> None:
        for one in running:
            self.stop(one)
        self.wait(running)
        raise Interrupted("stopped; the same command with run.resume=auto goes on there")

    def begin(self, root: Path) -> None:
        """Get ready, for a study in this folder. Raises InputError where it cannot run any command."""

    @abstractmethod
    def start(self, command: Command, slot: int) -> Handle:
        """Start a command; `slot`: its number among those that run at a time, from 0."""

    @abstractmethod
    def code_of(self, running: Handle) -> int | None:
        """The exit code of one that has ended, else None."""

    @abstractmethod
    def stop(self, running: Handle) -> None:
        """Have one stop by itself, with what it keeps to go on from; does not wait for that."""

    def wait(self, running: Sequence[Handle]) -> None:
        """Until these, which were stopped, have ended; where that is to be waited for."""

    def abandon(self, running: Sequence[Handle]) -> None:
        """The study ends, whatever still runs."""


class Local(Executor["subprocess.Popen[str]"], options.Local):
    """Some at a time on this machine, by sharing out its cores."""

    every_s = 0.2

    def start(self, command: Command, slot: int) -> "subprocess.Popen[str]":
        return _start(command, core_share(slot, self.jobs), self.jobs)

    def code_of(self, running: "subprocess.Popen[str]") -> int | None:
        return running.poll()

    def stop(self, running: "subprocess.Popen[str]") -> None:
        running.send_signal(SIGTERM)

    def wait(self, running: Sequence["subprocess.Popen[str]"]) -> None:
        for process in running:
            process.wait()

    def abandon(self, running: Sequence["subprocess.Popen[str]"]) -> None:
        for process in running:
            process.send_signal(SIGKILL)
            process.wait()


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
