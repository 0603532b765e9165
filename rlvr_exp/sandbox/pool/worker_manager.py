"""A pool's workers: started at the strongest available level, no weaker than required; replaced, ended.

Knows nothing of jobs. Used by the dispatcher's thread alone.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.isolation.jail import AUTO, LEVELS, OPEN_AT
from rlvr_exp.sandbox.pool.job_queue import JobQueue
from rlvr_exp.sandbox.pool.link import Broken, LevelRefused, Link, Program, Unavailable

_REMEDY = (
    "rlvr_exp/docs/sandbox.md, 'In containers', names what to allow; or set sandbox.require and sandbox.level weaker "
    "where the candidates may be trusted that far"
)


@dataclass(frozen=True)
class IsolationRequest:
    """The requested level: `level` is a name or "auto", `require` the weakest accepted, "" for any."""

    level: str = "auto"
    require: str = ""

    def __post_init__(self) -> None:
        for name, value, extra in (("level", self.level, "auto"), ("require", self.require, "")):
            if value not in (*LEVELS, extra):
                allowed = ", ".join(repr(choice) for choice in (extra, *LEVELS))
                raise InputError(InputProblem(f"sandbox.{name}", "no such level", got=value, allowed=allowed))
        if self.level != "auto" and self.weaker(self.level):
            what = f"is weaker than sandbox.require={self.require}"
            raise InputError(InputProblem("sandbox.level", what, got=self.level, remedy="make one of the two follow"))

    def weaker(self, level: str) -> bool:
        return bool(self.require) and LEVELS.index(level) > LEVELS.index(self.require)

    def ladder(self) -> tuple[str, ...]:
        """The levels to try, strongest first; those too weak come last, to report what is available."""
        if self.level != "auto":
            return (self.level,)
        return LEVELS if self.require == "strict" else AUTO


class WorkerManager:
    """Starts workers. `level` is the first worker's; every later worker has it."""

    def __init__(self, program: Program, isolation: IsolationRequest):
        self._program, self._isolation = program, isolation
        self.level: str | None = None

    def first(self, queue: JobQueue, stopped: Callable[[], bool]) -> Link:
        """The first worker, down the ladder; once a level is set, a worker of that level.

        Raises:
            InputError: the required or requested level is not available here.
            Unavailable: no worker starts at all.
        """
        refused: dict[str, str] = {}
        for level in (self.level,) if self.level else self._isolation.ladder():
            link = self.next(queue, level)
            if link.await_greeting(stopped):
                if self._isolation.weaker(level):
                    link.close()
                    raise self._too_weak(level, refused)
                if self.level is None:
                    _warn(level, refused)
                self.level = level
                return link
            fault = link.failure()
            if not isinstance(fault, LevelRefused):
                raise fault
            refused[level] = str(fault)
        reasons = "; ".join(f"{level}: {reason}" for level, reason in refused.items())
        if self.level is not None:
            raise Unavailable(reasons)
        if self._isolation.level != "auto":
            raise self._not_here(refused[self._isolation.level])
        raise Broken(reasons)

    def next(self, queue: JobQueue, level: str | None = None) -> Link:
        """A worker that is still starting. Raises Unavailable."""
        try:
            return Link(self._program, level or self.level, queue)
        except OSError as fault:
            kind = Broken if isinstance(fault, FileNotFoundError | PermissionError) else Unavailable
            raise kind(f"cannot start {sys.executable}: {fault}") from fault

    def _too_weak(self, level: str, refused: dict[str, str]) -> InputError:
        why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        what = f"this machine isolates candidates less than required: {level} is reached ({why})"
        return InputError(
            InputProblem("sandbox.require", what, got=level, allowed=self._isolation.require, remedy=_REMEDY)
        )

    def _not_here(self, reason: str) -> InputError:
        what = f"cannot be had on this machine: {reason}"
        return InputError(InputProblem("sandbox.level", what, got=self._isolation.level, remedy=_REMEDY))


def _warn(level: str, refused: dict[str, str]) -> None:
    if not refused:
        return
    why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
    print(f"sandbox: level {level}. Not isolated: {OPEN_AT[level]}. Refused here: {why}", file=sys.stderr, flush=True)


def isolation_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """A worker's greeting in the manifest's form."""
    isolated = facts["isolated"]
    held = [name for name, holds in sorted(isolated.items()) if holds]
    return {"level": facts["level"], "isolated": held, "not_isolated": sorted(set(isolated) - set(held))}
