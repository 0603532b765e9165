"""Runs of a study as jobs of Slurm, by submitit. The study and its jobs share the file system, this
checkout and the folder that the study was started in.

A study that is killed leaves its jobs running; a study that is stopped cancels them.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlvr_exp
from rlvr_exp.config import study as options
from rlvr_exp.core.errors import FAULT, INTERRUPTED, InputError, InputProblem
from rlvr_exp.studies.executors import Command, Executor

FILES = "submitit"
"""Folder of the study with submitit's own files."""
UNKNOWN = "UNKNOWN"
"""The state of a job that nothing is known of."""


@dataclass(frozen=True)
class Program:
    """A command, as submitit calls it on the machine that the job was given; returns its exit code.

    Slurm stops a job with SIGTERM before it queues it anew: the run keeps what it has, and the job ends without a result, so
    that the study waits for the next start, in which the run goes on.
    """

    command: Command

    def __call__(self) -> int:
        env = {**os.environ, "PYTHONPATH": str(Path(rlvr_exp.__file__).parents[1])}
        self.command.printed.parent.mkdir(parents=True, exist_ok=True)
        with open(self.command.printed, "a", encoding="utf-8") as out:
            words = [sys.executable, "-m", "rlvr_exp", *self.command.words]
            code = subprocess.run(words, env=env, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
        if code == INTERRUPTED and "SLURM_JOB_ID" in os.environ:
            os._exit(code)
        return code

    def checkpoint(self) -> Any:
        """What submitit queues where the job's time is up: the same again, which goes on."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Slurm(Executor[Any], options.Slurm):
    """As many jobs submitted at a time as `jobs` says."""

    @property
    def every_s(self) -> float:  # type: ignore[override]
        return 2.0 if self.cluster == "slurm" else 0.2

    def begin(self, root: Path) -> None:
        """Raises InputError: submitit is not installed, or takes no such parameters."""
        self._submitit = self._executor(root)

    def start(self, command: Command, slot: int) -> Any:
        return self._submitit.submit(Program(command))

    def code_of(self, running: Any) -> int | None:
        if running.done() or (running.state == UNKNOWN and not _queued(running.job_id)):
            return _code(running) if running.done() else FAULT
        return None

    def stop(self, running: Any) -> None:
        running.cancel(check=False)  # Of one that has ended Slurm says so, which is no reason to leave the others.

    def abandon(self, running: Sequence[Any]) -> None:
        for one in running:
            self.stop(one)

    def _executor(self, root: Path) -> Any:
        try:
            import submitit
        except ImportError as fault:
            remedy = "pip install 'rlvr_exp[submitit]', or executor=local"
            raise InputError(InputProblem("executor", "needs submitit", "slurm", "", "", remedy)) from fault
        try:
            executor = submitit.AutoExecutor(folder=root / FILES, cluster=self.cluster)
            executor.update_parameters(**self.parameters)
        except (NameError, RuntimeError, ValueError, AssertionError) as fault:  # As submitit has them, in words.
            remedy = "see submitit's AutoExecutor; executor.cluster=local without Slurm"
            raise InputError(
                InputProblem("executor", f"submitit refuses: {fault}", str(self.parameters), "", "", remedy)
            ) from fault
        return executor


def _queued(job_id: str) -> bool:
    """Whether Slurm still has the job: asked where it keeps no accounts, by which submitit learns of an end without a result."""
    done = subprocess.run(["squeue", "-h", "-j", job_id], capture_output=True, text=True, check=False)
    answered = done.returncode == 0 or "Invalid job id" in done.stderr
    return bool(done.stdout.strip()) or not answered


def _code(job: Any) -> int:
    """Of a job that ended by itself; a fault of ours where it was lost, such as by its time limit."""
    return FAULT if job.exception() is not None else int(job.result())
