"""Verifies tests in the form of calls: first against a reference, then the tests that hold of it against other programs.

A test that the reference fails is invalid. A program is caught by a valid test on which it returns another value than
the reference, or nothing; by a test of an exception if it raises none of its kind. Reference and programs run in the
sandbox on the arguments alone, all of a text's at once; values are compared here. Problems with a test file are
`pytest`'s and all others `python_io`'s, and are judged as those do.

Tests pass if every line is a valid test and, with programs, some program is caught. The measures are `validity` (valid
tests of all lines), `mutation_score` (programs that are caught), `duplicates` (lines that repeat a call, of all lines).
The outputs are whether each test is valid, and for each program which tests catch it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.calls import Approx, CallsProblem, Raises, WrittenTests, calls_of, read_tests
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
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


class PythonTests(Verifier, Executor, options.PythonTests):
    """Judges `CallsProblem`s, and all that `PythonIO` and `PytestSuite` judge."""

    name = "python_tests"
    version = f"4+{PythonIO.version}+{PytestSuite.version}"
    row_format = "python_io"
    also_judges = ("pytest",)

    def __init__(self, sandbox: options.Sandbox, cache: options.Cache | None = None, **given: Any):
        super().__init__(**given)
        self._given, self._lock = (sandbox, cache), threading.Lock()
        self._opened: PytestSuite | None = None
        self._shared: OrderedDict[tuple[Any, ...], Future[list[Execution]]] = OrderedDict()
        self._programs = PythonIO(sandbox, cache, case_cpu_s=self.case_cpu_s, packages=self.packages)

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
        own = calls_of([text or ""], problem.entry_point)
        calls = calls_of([*problem.together, text or ""], problem.entry_point)

        def judged(done: list[Execution]) -> Execution | Future[Execution]:
            if calls == own or not any(one.verdict.bucket in LIMITS for one in done):
                return _judged(tests, calls, done)
            # Another writer's call may have used up the limits that all calls of a program share: these are judged alone.
            alone = self._run(replace(problem, together=()), own)
            return then(alone, lambda again: _judged(tests, own, again))

        return then(self._run(problem, calls), judged)

    def _run(self, problem: CallsProblem, calls: tuple[Case, ...]) -> Future[list[Execution]]:
        """The reference and the programs on some calls; tests that are judged together share the run."""
        codes = (problem.reference, *problem.programs)
        key = (problem.entry_point, codes, repr([case.args for case in calls]))
        with self._lock:
            if problem.together and key in self._shared:
                return self._shared[key]
            asked = PythonProblem(problem.entry_point, calls)
            found = gathered([self._programs.execute(Request(asked, Candidate(code))) for code in codes])
            if problem.together:
                self._shared[key] = found
                while len(self._shared) > SHARED_RUNS:
                    self._shared.popitem(last=False)
        return found

    def tool(self) -> Mapping[str, str]:
        found = {"pytest": metadata.version("pytest")} if find_spec("pytest") else {}
        return {**self._programs.tool(), **found}

    def metrics(self) -> Mapping[str, float]:
        first, second = self._programs.metrics(), self._opened.metrics() if self._opened else {}
        return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}

    def isolation(self) -> dict[str, Any]:
        return self._programs.isolation()

    def close(self) -> None:
        self._programs.close()
        if self._opened:
            self._opened.close()

    def _suites(self) -> PytestSuite:
        """Opened by the first problem with a test file. Raises InputError if pytest is not installed."""
        with self._lock:
            if self._opened is None:
                self._opened = PytestSuite(*self._given, cpu_s=SUITE_CPU_S, wall_s=3 * SUITE_CPU_S)
            return self._opened


def _without_its_own(request: Request) -> Request:
    """The reference as a candidate like others: by its own suite it would not run again."""
    own = same_program(request.candidate.text, request.problem.reference)
    return replace(request, problem=replace(request.problem, reference="")) if own else request


def _judged(tests: WrittenTests, calls: Sequence[Case], runs: Sequence[Execution]) -> Execution:
    broken = next((run.verdict for run in runs if run.verdict.outcome == "no_verdict"), None)
    if broken is not None:
        return Execution(Verdict("no_verdict", log=broken.log), ())
    count = len(tests.cases)
    at = {repr(call.args): place for place, call in enumerate(calls)}
    places = [at[repr(case.args)] for case in tests.cases]
    # A valid test expects the act of the reference, as the test writes it: outputs are compared with plain data.
    wanted = [case.expected for case in tests.cases]
    holds = [[_holds(run, place, len(calls), one) for place, one in zip(places, wanted, strict=True)] for run in runs]
    valid, others = holds[0], holds[1:]
    catches = [[valid[place] and not given[place] for place in range(count)] for given in others]
    return Execution(_verdict(tests, valid, catches), (tuple(valid), tuple(map(tuple, catches))))


def _verdict(tests: WrittenTests, valid: Sequence[bool], catches: Sequence[Sequence[bool]]) -> Verdict:
    held, caught, lines = sum(valid), sum(map(any, catches)), tests.lines
    measures = {"validity": held / lines, "duplicates": tests.duplicates / lines}
    if catches:
        measures["mutation_score"] = caught / len(catches)
    if held == lines and (caught or not catches):
        return Verdict("passed", passed=held, total=lines, measures=measures)
    invalid = [str(case.args) for case, holds in zip(tests.cases, valid, strict=True) if not holds]
    log = f"the reference returns something else for {', '.join(invalid[:3])}" if invalid else "no program is caught"
    if held < lines and not invalid:
        log = f"{tests.faulty} lines are no test, {tests.duplicates} repeat one"
    return Verdict("failed", "wrong_answer", passed=held, total=lines, log=log, measures=measures)


def _holds(run: Execution, place: int, count: int, wanted: Any) -> bool:
    """Whether a program did on a call as a test expects; None is no value: it stands for a call that returned nothing."""
    if len(run.outputs) != count or wanted is None:
        return False
    if isinstance(wanted, Raises):
        return bool(set(wanted.names).intersection(run.raised[place]))
    got = run.outputs[place]
    return got is not None and (near(got, wanted) if isinstance(wanted, Approx) else equal(got, wanted))
