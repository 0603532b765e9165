"""Executors: start the commands of many runs, some at a time, and wait for them.

Slurm works by submitit. A study and its jobs share the file system, this checkout and the folder that the study was started
in. A study that is killed leaves its jobs running; a study that is stopped cancels them.
"""

import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Generic, TypeVar

import rlvr_exp
from rlvr_exp.config import study as options
from rlvr_exp.core.errors import FAULT, INTERRUPTED, InputError, InputProblem, Interrupted
from rlvr_exp.launch.children import automatic_threads, start_program
from rlvr_exp.records.context import RunContext


@dataclass(frozen=True)
class Command:
    """A command of the program, with the file for its output."""

    words: tuple[str, ...]
    printed: Path


class Feed(ABC):
    """The commands of an executor. The next command may depend on how earlier ones ended."""

    @abstractmethod
    def next(self) -> tuple[str, Command] | None:
        """The next command and its name. None while running commands must end first, and at the end."""

    @abstractmethod
    def ended(self, name: str, code: int) -> None:
        """The command has ended with this exit code."""

    def unwanted(self) -> Collection[str]:
        """Names of running commands to stop."""
        return ()


Handle = TypeVar("Handle")


class Executor(ABC, Generic[Handle]):
    """Runs `jobs` commands at a time. A subclass starts a command and reports its exit code."""

    jobs: int
    every_s: float
    """Seconds between two polls."""

    def run(self, feed: Feed, context: RunContext) -> None:
        """Run the commands of the feed. A failed command does not stop the others.

        Raises:
            InputError: the executor cannot run any command.
            Interrupted: a stop was requested, and the running commands have stopped.
        """
        if note := self.begin(context.directory):
            context.progress(kind="note", text=note)
        running, slots, stopping = dict[str, Handle](), dict[str, int](), set[str]()
        try:
            while True:
                if context.interrupted:
                    for one in running.values():
                        self.stop(one)
                    self.wait([*running.values()])
                    raise Interrupted("stopped; the same command with run.resume=auto goes on there")
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

    def begin(self, root: Path) -> str:
        """Prepare for a study in the folder `root`, and return a note. Raises InputError if no command can run."""
        return ""

    @abstractmethod
    def start(self, command: Command, slot: int) -> Handle:
        """Start a command. `slot` numbers the commands that run at the same time, from 0."""

    @abstractmethod
    def code_of(self, running: Handle) -> int | None:
        """The exit code of an ended command, else None."""

    @abstractmethod
    def stop(self, running: Handle) -> None:
        """Request that a command saves its state and stops. Does not wait."""

    def wait(self, running: Sequence[Handle]) -> None:
        """Wait until stopped commands have ended."""

    def abandon(self, running: Sequence[Handle]) -> None:
        """Kill or cancel the commands that still run at the end of the study."""


class Local(Executor["subprocess.Popen[str]"], options.Local):
    """Runs commands on this machine and divides its cores among them."""

    every_s = 0.2

    def start(self, command: Command, slot: int) -> "subprocess.Popen[str]":
        env = environment()
        if self.jobs > 1:  # OMP_NUM_THREADS of this process is meant for the whole machine.
            threads = max(1, automatic_threads() // self.jobs)
            env["OMP_NUM_THREADS"] = str(min(int(env.get("OMP_NUM_THREADS", threads)), threads))
        command.printed.parent.mkdir(parents=True, exist_ok=True)
        with open(command.printed, "a", encoding="utf-8") as out:
            return start_program(command.words, out, env, core_share(slot, self.jobs))

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
    """The cores of one of `slots` commands; empty if there are fewer cores than commands."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[slot::slots] if 1 < slots <= len(cores) else []


def environment(path: str = "") -> dict[str, str]:
    """The environment of this process, in which a command finds this checkout. `path`: further folders of modules."""
    folders = [str(Path(rlvr_exp.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH"), path])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


FILES = "submitit"
"""Folder of the study with submitit's own files."""
UNKNOWN = "UNKNOWN"
"""State of a job without information."""


@dataclass(frozen=True)
class SubmittedCommand:
    """A command that submitit calls on the machine of the job. Returns its exit code.

    Slurm stops a job with SIGTERM before it requeues it. The run saves its state, and the job ends without a result, so that the
    study waits for the next start, which resumes the run.
    """

    command: Command

    def __call__(self) -> int:
        self.command.printed.parent.mkdir(parents=True, exist_ok=True)
        with open(self.command.printed, "a", encoding="utf-8") as out:
            words = [sys.executable, "-m", "rlvr_exp", *self.command.words]
            code = subprocess.run(
                words, env=environment(), stdout=out, stderr=subprocess.STDOUT, check=False
            ).returncode
        if code == INTERRUPTED and "SLURM_JOB_ID" in os.environ:
            os._exit(code)
        return code

    def checkpoint(self) -> Any:
        """The same command, which submitit queues again when the time of the job is up."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Slurm(Executor[Any], options.Slurm):
    """Submits `jobs` jobs at a time."""

    @property
    def every_s(self) -> float:  # type: ignore[override]
        return 2.0 if self.cluster == "slurm" else 0.2

    def begin(self, root: Path) -> str:
        """Raises InputError: submitit is not installed, or takes no such parameters."""
        try:
            import submitit
        except ImportError as fault:
            remedy = "pip install 'rlvr_exp[submitit]', or executor=local"
            raise InputError(InputProblem("executor", "needs submitit", "slurm", "", "", remedy)) from fault
        try:
            self._submitit = submitit.AutoExecutor(folder=root / FILES, cluster=self.cluster)
            self._submitit.update_parameters(**self.parameters)
        except (NameError, RuntimeError, ValueError, AssertionError) as fault:
            remedy = "see submitit's AutoExecutor; executor.cluster=local without Slurm"
            raise InputError(
                InputProblem("executor", f"submitit refuses: {fault}", str(self.parameters), "", "", remedy)
            ) from fault
        return ""

    def start(self, command: Command, slot: int) -> Any:
        return self._submitit.submit(SubmittedCommand(command))

    def code_of(self, running: Any) -> int | None:
        if running.done():  # A job without a result was lost, for example by its time limit.
            return FAULT if running.exception() is not None else int(running.result())
        return FAULT if running.state == UNKNOWN and not _queued(running.job_id) else None

    def stop(self, running: Any) -> None:
        running.cancel(check=False)  # An ended job is no error.

    def abandon(self, running: Sequence[Any]) -> None:
        for one in running:
            self.stop(one)


def _queued(job_id: str) -> bool:
    """Whether Slurm still has the job. Needed if Slurm keeps no accounts, from which submitit learns that a job was lost."""
    done = subprocess.run(["squeue", "-h", "-j", job_id], capture_output=True, text=True, check=False)
    answered = done.returncode == 0 or "Invalid job id" in done.stderr
    return bool(done.stdout.strip()) or not answered
