"""The lines of a script that its own run executes, measured in the sandbox.

A figure beside the verdict, never a part of it: each script runs in a process of its own, and its report about itself
reaches no verdict and no reward.
"""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.jobs import Cut, Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.pool import Pool
from rlvr_exp.verifiers.futures import then

HARNESS = "rlvr_exp.sandbox.harnesses.python.line_coverage"
CPU_S, MEMORY_MB = 60.0, 2048
"""Limits of one script: those of CanItEdit's runner for the time, those of `verifier=pytest` for the address space."""


def not_installed(option: str) -> InputProblem | None:
    """The problem of an option that needs coverage, if the package is missing."""
    if find_spec("coverage") is not None:
        return None
    return InputProblem(option, "the package coverage is not installed", remedy="pip install 'rlvr_exp[coverage]'")


@dataclass(frozen=True)
class LineCoverage:
    """Line numbers of a script, from 1."""

    listed: frozenset[int]
    """Lines that coverage's report lists as missing: ranges of statements that did not run, with comments and blank lines
    inside a range, without lines that a pragma excludes."""
    statements: frozenset[int]
    """First lines of all statements, whatever pragmas say."""
    not_run: frozenset[int]
    """The statements among them that did not run."""


class LineCoverageRunner:
    """Runs scripts under coverage; owns its workers until `close`."""

    def __init__(self, sandbox: Sandbox):
        self._limits = replace(JobLimits.of(sandbox), cpu_s=CPU_S, wall_s=2 * CPU_S, memory_mb=MEMORY_MB)
        self._pool = Pool.of(sandbox, HARNESS, packages=True)

    def measure(self, script: str) -> Future[LineCoverage | None]:
        """The lines of one script; None if it does not end by itself with exit code 0."""
        return then(self._pool.submit(Job(wire.encode(script), self._limits)), read)

    def close(self) -> None:
        self._pool.close()


def read(result: JobResult) -> LineCoverage | None:
    """The content of a run's records; None for a fault, a limit, or records of another form."""
    if result.end != "exit" or result.status != 0:
        return None
    try:
        kind, *lines = wire.decode(next(frames(result.records), b""))
        if kind != "lines" or len(lines) != 3 or not all(_is_lines(some) for some in lines):
            return None
        return LineCoverage(*map(frozenset, lines))
    except (Cut, ValueError, TypeError):
        return None


def _is_lines(value: Any) -> bool:
    return type(value) is list and all(type(line) is int and line > 0 for line in value)
