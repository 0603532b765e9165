"""What a candidate does, beside whether it is right: its output on every case. Voting, hindsight and the keys of novelty
read it; a verdict never does."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.futures import then


@dataclass(frozen=True)
class Execution:
    """One run of a candidate on all cases of its problem."""

    verdict: Verdict
    outputs: tuple[Any, ...]
    """What it returned on each case as plain data, or printed; None where it returned nothing or did not return. Empty where
    it was not run."""
    raised: tuple[tuple[str, ...], ...] = ()
    """By case the built-in classes of the exception that it raised, the narrowest first; empty if it raised none."""


class Executor(ABC):
    """A verifier that can tell what a candidate returned. Nothing of it is cached: each call is a new run, in a new
    process."""

    @abstractmethod
    def execute(self, request: Request) -> Future[Execution]:
        """Run one candidate; the future never raises for what it does."""


def executor_of(verifier: Verifier, option: str) -> Executor:
    """A run's verifier as an executor.

    Raises:
        InputError: its verdicts are all there is; `option` is what needs more.
    """
    if isinstance(verifier, Executor) and isinstance(getattr(verifier, "inner", verifier), Executor):
        return verifier
    what = "needs a verifier that runs programs and keeps what they return"
    raise InputError(InputProblem(option, what, verifier.name, "verifier=python_io"))


REMEMBERED = 8192
"""Candidates whose outputs are kept in memory: those of a round of self-play, in some hundred megabytes."""


class KeepsOutputs(Verifier):
    """Judges by executing, so that its verdicts carry outputs. It owns nothing.

    Args:
        remember: each distinct candidate of a problem is run once, as far as the last ones are remembered.

    Raises:
        InputError: as `executor_of`.
    """

    def __init__(self, verifier: Verifier, option: str, remember: bool = True):
        self._remember = remember
        self._executor = executor_of(verifier, option)
        self._known = OrderedDict[tuple[int, str], tuple[Any, Future[Verdict]]]()
        """By a problem and a text; the problem is kept, whose id would else be another's."""
        self.name, self.version = verifier.name, verifier.version

    def submit(self, request: Request) -> Future[Verdict]:
        if not self._remember or request.candidate.text is None:  # Without a text each has a fault of its own.
            return self._judged(request)
        key = (id(request.problem), request.candidate.text)
        if key not in self._known:
            self._known[key] = request.problem, self._judged(request)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key][1]

    def _judged(self, request: Request) -> Future[Verdict]:
        return then(self._executor.execute(request), _with_outputs)

    def close(self) -> None:
        """Nothing to end."""


def _with_outputs(found: Execution) -> Verdict:
    return replace(found.verdict, outputs=found.outputs or None)
