"""What a candidate does, beside whether it is right: its output on every case. Voting, hindsight and the keys of novelty
read it; a verdict never does."""

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier


@dataclass(frozen=True)
class Execution:
    """One run of a candidate on all cases of its problem."""

    verdict: Verdict
    outputs: tuple[Any, ...]
    """What it returned on each case as plain data, or printed; None where it returned nothing or did not return. Empty where
    it was not run."""


class Executor(ABC):
    """A verifier that can tell what a candidate returned. Nothing of it is cached: each call is a new run, in a new
    process."""

    @abstractmethod
    def execute(self, request: Request) -> Future[Execution]:
        """Run one candidate; the future never raises for what it does."""


def executor_of(verifier: Verifier, option: str) -> Executor:
    """The executor behind a run's verifier.

    Raises:
        InputError: its verdicts are all there is; `option` is what needs more.
    """
    inner = getattr(verifier, "inner", verifier)
    if isinstance(inner, Executor):
        return inner
    what = "needs a verifier that runs programs and keeps what they return"
    raise InputError(InputProblem(option, what, verifier.name, "verifier=python_io"))
