"""Verifies tests in the form of calls: first against a reference, then the tests that hold of it against other programs.

A test is valid if the reference returns the value that it expects, and if its arguments have the types of known calls or of the
reference's annotations. A test of an exception is valid if the reference raises it by a statement of its own. A program is caught by
a valid test on which it returns another value than the reference, or nothing; by a test of an exception if it raises none of its
kind. Reference and programs run in the sandbox on the arguments alone; values are compared here. Problems with a test file are
`pytest`'s and all others `python_io`'s, and are judged as those do.

Each call has its own limit of CPU time, and one that ends its process takes no other with it. A program that reaches a limit is
caught only if the reference needs less than 1/`FAR` of that time.

Tests pass if every line is a valid test and, with programs, some program is caught. The measures are `validity` (valid
tests of all lines), `mutation_score` (programs that are caught), `duplicates` (lines that repeat a test, of all lines).
The outputs are whether each test is valid, and for each program which tests catch it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.tasks.arguments import Arguments
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.calls import Approx, CallsProblem, Raises, WrittenTests, calls_of, read_tests
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.python_syntax import ANY_EXCEPTION, exceptions, syntax_fault, tree
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict, Verifier
from rlvr_exp.verifiers.compare import equal, near
from rlvr_exp.verifiers.futures import completed_future, gathered, then
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite, same_program

NOTHING = "no test: a line each such as f(1) == 2"
LIMITS = ("timeout", "memory", "output_limit")
SUITE_CPU_S = 10.0
"""CPU seconds of one pytest suite, which may take three times as many by the wall clock."""
SHARED_RUNS = 256
"""Runs that are kept for tests that are judged together; these come one after the other."""
SHARE = 4
"""Calls that may each reach their limit before a program reaches the sandbox's."""
FAR = 10.0


@dataclass(frozen=True)
class Runs:
    """A reference and programs on some calls."""

    all: list[Execution]
    """The reference's first."""
    quick: frozenset[int]
    """Calls on which the reference is far below the limit."""


class PythonTests(Verifier, Executor, options.PythonTests):
    """Judges `CallsProblem`s, and all that `PythonIO` and `PytestSuite` judge."""

    name = "python_tests"
    version = f"5+{PythonIO.version}+{PytestSuite.version}"
    row_format = "python_io"
    also_judges = ("pytest",)

    def __init__(self, sandbox: options.Sandbox, cache: options.Cache | None = None, **given: Any):
        super().__init__(**given)
        self._lock = threading.Lock()
        self._opened: PytestSuite | None = None
        self._shared: OrderedDict[tuple[Any, ...], Future[Runs]] = OrderedDict()
        self._cpu_s, self._call_cpu_s = sandbox.cpu_s, self.case_cpu_s or sandbox.cpu_s / SHARE
        where: dict[str, Any] = {"pool": self.pool, "address": self.address}
        self._given, self._where = (sandbox, cache), where
        self._programs = PythonIO(sandbox, cache, case_cpu_s=self.case_cpu_s, packages=self.packages, **where)

    def submit(self, request: Request) -> Future[Verdict]:
        if isinstance(request.problem, PytestProblem):
            return self._suites().submit(request)
        if not isinstance(request.problem, CallsProblem):
            return self._programs.submit(request)
        return then(self.execute(request), lambda done: done.verdict)

    def execute(self, request: Request) -> Future[Execution]:
        problem, text = request.problem, request.candidate.text
        if isinstance(problem, PytestProblem):
            anew = self._suites().judge_uncached(_without_its_own(request))
            return then(anew, lambda verdict: Execution(verdict, ()))
        if not isinstance(problem, CallsProblem):
            return self._programs.execute(request)
        tests = read_tests(text or "", problem.entry_point)
        if not tests.cases:
            log = request.candidate.fault or NOTHING
            return completed_future(Execution(Verdict("failed", "parse", total=tests.lines, log=log), ()))
        calls = calls_of([*problem.together, text or ""], problem.entry_point)
        return then(self._run(problem, calls), lambda runs: _judged(problem, tests, calls, runs))

    def _run(self, problem: CallsProblem, calls: tuple[Case, ...]) -> Future[Runs]:
        """The reference and the programs on some calls; tests that are judged together share the run."""
        codes = (problem.reference, *problem.programs)
        key = (problem.entry_point, codes, repr([case.args for case in calls]))
        with self._lock:
            if problem.together and key in self._shared:
                return self._shared[key]
            asked = PythonProblem(problem.entry_point, calls)

            def with_reference(first: Execution) -> Future[Runs]:
                slow = _slow(first)
                others = gathered([self._each(asked, code, self._call_cpu_s, slow) for code in problem.programs])
                quick = frozenset(range(len(calls))).difference(slow)
                whole = self._alone(asked, problem.reference, self._cpu_s, first, slow)
                return then(whole, lambda own: then(others, lambda rest: Runs([own, *rest], quick)))

            reference = self._each(asked, problem.reference, self._call_cpu_s / FAR)
            found: Future[Runs] = then(reference, with_reference)
            if problem.together:
                self._shared[key] = found
                while len(self._shared) > SHARED_RUNS:
                    self._shared.popitem(last=False)
        return found

    def _each(self, asked: PythonProblem, code: str, cpu_s: float, slow: Sequence[int] = ()) -> Future[Execution]:
        """A program on each call, within a limit. Those that the limits of all calls together kept from their end run alone, and those
        that the reference is slow on run alone within the limit of the sandbox."""

        def again(done: Execution) -> Future[Execution]:
            return self._alone(asked, code, self._cpu_s, done, [place for place in _slow(done) if place in slow])

        def rest(done: Execution) -> Future[Execution]:
            shared = ("", "memory", "output_limit")
            places = [at for at, bucket in enumerate(done.buckets) if not done.returned(at) and bucket in shared]
            return then(self._alone(asked, code, cpu_s, done, places), again)

        return then(self._programs.execute(Request(asked, Candidate(code)), cpu_s), rest)

    def _alone(
        self, asked: PythonProblem, code: str, cpu_s: float, done: Execution, places: Sequence[int]
    ) -> Future[Execution]:
        """An execution with some calls in place of those of another, each in a process of its own."""
        limits = Limits(cpu_s=min(2 * cpu_s, self._cpu_s))  # Of a call into C, which no limit of a call interrupts.
        alone = [PythonProblem(asked.entry_point, asked.cases[at : at + 1], limits=limits) for at in places]
        running = [self._programs.execute(Request(one, Candidate(code)), cpu_s) for one in alone]

        def merged(found: list[Execution]) -> Execution:
            if broken := next((one for one in found if one.verdict.outcome == "no_verdict"), None):
                return broken
            outputs, raised, buckets = map(list, (done.outputs, done.raised, done.buckets))
            for place, one in zip(places, found, strict=True):
                outputs[place], raised[place] = one.outputs[0], one.raised[0]
                buckets[place] = "" if one.returned(0) else one.buckets[0] or one.verdict.bucket or "runtime_error"
            return Execution(done.verdict, tuple(outputs), tuple(raised), None, tuple(buckets))

        return then(gathered(running), merged)

    def tool(self) -> Mapping[str, str]:
        found = {"pytest": metadata.version("pytest")} if find_spec("pytest") else {}
        return {**self._programs.tool(), **found}

    def metrics(self) -> Mapping[str, float]:
        first, second = self._programs.metrics(), self._opened.metrics() if self._opened else {}
        return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}

    def isolation(self) -> dict[str, Any]:
        return self._programs.isolation()

    def nodes(self) -> list[str]:
        return self._programs.nodes()

    def close(self) -> None:
        self._programs.close()
        if self._opened:
            self._opened.close()

    def _suites(self) -> PytestSuite:
        """Opened by the first problem with a test file. Raises InputError if pytest is not installed."""
        with self._lock:
            if self._opened is None:
                self._opened = PytestSuite(*self._given, cpu_s=SUITE_CPU_S, wall_s=3 * SUITE_CPU_S, **self._where)
            return self._opened


def _without_its_own(request: Request) -> Request:
    """The reference as a candidate like others: by its own suite it would not run again."""
    own = same_program(request.candidate.text, request.problem.reference)
    return replace(request, problem=replace(request.problem, reference="")) if own else request


def _slow(run: Execution) -> list[int]:
    return [place for place, bucket in enumerate(run.buckets) if bucket == "timeout"]


def _judged(problem: CallsProblem, tests: WrittenTests, calls: Sequence[Case], runs: Runs) -> Execution:
    broken = next((run.verdict for run in runs.all if run.verdict.outcome == "no_verdict"), None)
    if broken is not None:
        return Execution(Verdict("no_verdict", log=broken.log), ())
    at = {repr(call.args): place for place, call in enumerate(calls)}
    places = [at[repr(case.args)] for case in tests.cases]
    # A valid test expects the act of the reference, as the test writes it: outputs are compared with plain data.
    pairs = list(zip(places, (case.expected for case in tests.cases), strict=True))
    holds = [[_holds(problem, run, place, wanted) for place, wanted in pairs] for run in runs.all]
    accepted = _accepted(problem, tests.cases, [runs.all[0].raised[place] for place in places])
    valid = [right and meant for right, meant in zip(holds[0], accepted, strict=True)]

    def catches(run: Execution, right: Sequence[bool]) -> list[bool]:
        blamed = [place in runs.quick or run.buckets[place] not in LIMITS for place in places]
        return [all(one) for one in zip(valid, (not held for held in right), blamed, strict=True)]

    columns = [catches(run, right) for run, right in zip(runs.all[1:], holds[1:], strict=True)]
    verdict = _verdict(tests, valid, columns, [not meant for meant in accepted])
    return Execution(verdict, (tuple(valid), tuple(map(tuple, columns))))


def _accepted(problem: CallsProblem, cases: Sequence[Case], raised: Sequence[Sequence[str]]) -> list[bool]:
    """Whether the reference is made for the arguments of each test, or refuses them by a statement."""
    if syntax_fault(problem.reference):
        return [False] * len(cases)
    arguments = Arguments(problem.known, problem.entry_point, problem.reference)
    stated = exceptions(tree(problem.reference))
    return [
        ANY_EXCEPTION in stated or names[0] in stated if names else arguments.take(case.args)
        for case, names in zip(cases, raised, strict=True)
    ]


def _verdict(
    tests: WrittenTests, valid: Sequence[bool], catches: Sequence[Sequence[bool]], foreign: Sequence[bool]
) -> Verdict:
    """`foreign`: tests whose arguments the reference is not made for."""
    held, caught, lines = sum(valid), sum(map(any, catches)), tests.lines
    measures = {"validity": held / lines, "duplicates": tests.duplicates / lines}
    if catches:
        measures["mutation_score"] = caught / len(catches)
    if held == lines and (caught or not catches):
        return Verdict("passed", passed=held, total=lines, measures=measures)
    invalid = [str(case.args) for case, holds in zip(tests.cases, valid, strict=True) if not holds]
    others = [str(case.args) for case, is_foreign in zip(tests.cases, foreign, strict=True) if is_foreign]
    log = f"the reference returns something else for {', '.join(invalid[:3])}" if invalid else "no program is caught"
    if others:
        log = f"the reference is not made for {', '.join(others[:3])}"
    elif held < lines and not invalid:
        log = f"{tests.faulty} lines are no test, {tests.duplicates} repeat one"
    return Verdict("failed", "wrong_answer", passed=held, total=lines, log=log, measures=measures)


def _holds(problem: CallsProblem, run: Execution, place: int, wanted: Any) -> bool:
    """Whether a program did on a call as a test expects."""
    if isinstance(wanted, Raises):
        return bool(set(wanted.names).intersection(run.raised[place]))
    got, tolerances = run.outputs[place], (problem.atol, problem.rtol)
    alike = near(got, wanted) if isinstance(wanted, Approx) else equal(got, wanted, False, *tolerances)
    return alike and not run.buckets[place]
