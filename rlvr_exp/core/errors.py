"""Failures that a person can act on, each with the exit code of the process.

Every message names the fault, its place, the value, the allowed values and a remedy. A failure of any other class is a
bug in this package: it keeps its traceback and ends with exit code 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

DONE, FAULT, BAD_INPUT, GUARD, INTERRUPTED = 0, 1, 2, 3, 130


class RlvrError(Exception):
    """Base of the failures that end a run with a message in place of a traceback."""

    exit_code = FAULT


@dataclass(frozen=True)
class InputProblem:
    """One problem of the user's input: a configuration key, a file, a missing component."""

    where: str
    """The key's path, the file, or the command-line word."""
    what: str
    """The fault, as a short clause."""
    got: str = ""
    allowed: str = ""
    suggestion: str = ""
    """The nearest existing name, when a name is unknown."""
    remedy: str = ""

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}"]
        named = (
            ("got", self.got),
            ("allowed", self.allowed),
            ("did you mean", self.suggestion),
            ("remedy", self.remedy),
        )
        lines += [f"    {name}: {value}" for name, value in named if value]
        return "\n".join(lines)


class InputError(RlvrError):
    """Bad input; raised before any work starts. Holds every problem found, so that all are shown together."""

    exit_code = BAD_INPUT

    def __init__(self, *problems: InputProblem):
        if not problems:
            raise ValueError("InputError needs at least one InputProblem")
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def check_state(owner: object, state: Iterable[str], keys: Iterable[str]) -> None:
    """Raises InputError unless a saved state has exactly these keys."""
    if set(state) != set(keys):
        got, allowed = (", ".join(sorted(names)) or "no keys" for names in (state, keys))
        where, remedy = (
            f"state of {type(owner).__name__}",
            "resume with the version and options that wrote the checkpoint",
        )
        raise InputError(InputProblem(where, "has other keys", got, allowed, remedy=remedy))


class GuardStop(RlvrError):
    """A guard stopped the run (not-a-number, graders failing, nothing trained); the run directory stays intact."""

    exit_code = GUARD


class Interrupted(RlvrError):
    """A signal interrupted the run; training has written a checkpoint of its current step."""

    exit_code = INTERRUPTED
