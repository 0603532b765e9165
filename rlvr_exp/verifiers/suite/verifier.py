"""Verifies solutions by pytest suites: real pytest in one sandboxed process, the solution in another, behind a bridge.

A solution is the module `solution`; the suite is `test_solution.py` and what test files and conftest.py the problem
adds to it. `passed` requires every promised test collected, run to its end and reported as passed by pytest, at least
one test, and the session's regular end. The count is of tests, parameters apart;
rlvr_exp/docs/verifiers.md describes the bridge and skips.

Where a problem has a reference, its own run over the bridge comes first, once: what it returns as plain data a
candidate must return as plain data, and a suite that the reference does not pass gives no verdicts. Not covered: a
wrong suite (see `validate`); with `process="shared"` whatever a solution does to the shared interpreter.
"""

import platform
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.pool.job_queue import Job, JobLimits
from rlvr_exp.sandbox.pool.link import packages_digest
from rlvr_exp.sandbox.pool.pool import Pool
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import CachedVerifier, Judgement, VerificationJob
from rlvr_exp.verifiers.futures import then
from rlvr_exp.verifiers.suite.judge import Run, judge, read
from rlvr_exp.verifiers.suite.shape import Shape, Uses, shape_of, uses_of

HARNESS = "rlvr_exp.sandbox.harnesses.pytest.suite"
SUITE = "test_solution.py"
_RESULT_KB = 16 * 1024
"""Size limit of all records of a suite together."""
_PROFILES = 4096
"""References whose runs are cached."""


@dataclass(frozen=True)
class _Suite:
    """One suite with its files, its limits and what its text says."""

    shape: Shape
    uses: Uses
    tests: dict[str, str]
    files: dict[str, str]
    limits: JobLimits


def suite_tool() -> dict[str, str]:
    """What verdicts by suites depend on besides their content; nothing where pytest is not installed."""
    if find_spec("pytest") is None:
        return {}
    return {
        "python": platform.python_version(),
        "pytest": metadata.version("pytest"),
        "packages": packages_digest(),
    }


class PytestSuite(CachedVerifier, options.PytestSuite):
    """Judges `PytestProblem`s.

    Args:
        sandbox: workers, level, and the limits of a solution whose problem names none.
    """

    name = "pytest"
    version = "4"

    def __init__(self, sandbox: options.Sandbox, cache: options.Cache | None = None, **given: Any):
        if find_spec("pytest") is None:
            remedy = "pip install 'rlvr_exp[pytest]'"
            raise InputError(InputProblem("verifier=pytest", "the package pytest is not installed", remedy=remedy))
        super().__init__(cache, **given)
        usual = JobLimits.of(sandbox)
        self._limits = replace(
            usual,
            cpu_s=self.cpu_s or usual.cpu_s,
            wall_s=self.wall_s or usual.wall_s,
            memory_mb=self.memory_mb or usual.memory_mb,
            result_kb=_RESULT_KB,
        )
        self._shared = self.process == "shared"
        self._profiles: OrderedDict[bytes, Future[Run]] = OrderedDict()
        self._lock_profiles = threading.Lock()
        self._pool = Pool.of(sandbox, HARNESS, packages=True)

    def prepare(self, request: Request) -> Verdict | VerificationJob:
        problem, candidate = request.problem, request.candidate
        if not isinstance(problem, PytestProblem):
            return Verdict("no_verdict", log=f"the pytest verifier takes a PytestProblem, not {type(problem).__name__}")
        tests, files = _parted(problem)
        shape = _shape(tests, files)
        if shape.fault or (bad := _bad_name([*tests, *files])):
            return Verdict("no_verdict", log=f"the suite cannot be run: {shape.fault or bad}")
        if candidate.text is None:
            total = sum(test.counted for test in shape.tests)
            return Verdict("failed", "parse", total=total, log=candidate.fault or "no program in the answer")
        limits = self._limits.named_by(problem.limits)
        parts = [list(tests.items()), list(files.items()), repr(limits), self._shared, problem.reference]
        suite = _Suite(shape, uses_of(tuple(tests.values())), tests, files, limits)
        return VerificationJob(wire.encode([candidate.text, *parts]), (suite, wire.encode(parts)), request)

    def start(self, work: VerificationJob) -> Future[Judgement]:
        suite, known_by = work.payload
        text, reference = work.request.candidate.text, work.request.problem.reference
        if not reference or self._shared:
            return then(self._run(suite, text), lambda run: self._judged(suite, run))
        profile = self._profile(suite, known_by, reference)

        def after(first: Run) -> Judgement | Future[Judgement]:
            judgement = self._judged(suite, first)
            if same_program(text, reference):
                return judgement
            if judgement.verdict.outcome != "passed":
                log = f"the suite cannot judge: its reference does not pass ({judgement.verdict.log})"
                return Judgement(Verdict("no_verdict", log=log), cacheable=False)
            return then(self._run(suite, text, first.profile), lambda run: self._judged(suite, run))

        return then(profile, after)

    def _profile(self, suite: _Suite, known_by: bytes, reference: str) -> Future[Run]:
        """The reference's run, which records what it returns where; once, as long as it is cached."""
        with self._lock_profiles:
            known = self._profiles.get(known_by)
            if known is None or (known.done() and not known.result().result.reproducible):
                known = self._profiles[known_by] = self._run(suite, reference, recording=True)
                while len(self._profiles) > _PROFILES:
                    self._profiles.popitem(last=False)
            return known

    def _run(
        self, suite: _Suite, text: str | None, sites: dict[str, int] | None = None, recording: bool = False
    ) -> Future[Run]:
        """One solution under one suite."""
        uses = suite.uses
        both = {"solution": text, "words": uses.words, "threads": uses.threads}
        job = both | {"tests": suite.tests, "files": suite.files, "imports": suite.shape.imports}
        job |= {"patches": suite.shape.patches}
        job |= {"stars": uses.stars, "classes": uses.classes, "sites": sites, "recording": recording}
        peer = b"" if self._shared else wire.encode(both)
        return then(self._pool.submit(Job(wire.encode(job), suite.limits, peer)), read)

    def _judged(self, suite: _Suite, run: Run) -> Judgement:
        verdict = judge(suite.shape, run)
        self._count("assertions", verdict.assertions)
        self._count("own_assertions", verdict.own_assertions)
        return Judgement(verdict, cacheable=run.result.reproducible)

    def metrics(self) -> Mapping[str, float]:
        """The base's counts, with the assertions that held and those that only solutions' own comparison decided."""
        return {**super().metrics(), **{name: float(self._counts[name]) for name in ("assertions", "own_assertions")}}

    def tool(self) -> Mapping[str, str]:
        return suite_tool()

    def isolation(self) -> dict[str, Any]:
        held = self._pool.isolation()
        return held | {"guarded": False, "process": "shared with the tests"} if self._shared else held

    def close(self) -> None:
        self._pool.close()
        super().close()


def same_program(text: str | None, reference: str) -> bool:
    """Whether a solution is the reference: what reads one from a completion may drop empty lines at its ends."""
    return text is not None and text.strip("\n") == reference.strip("\n")


def _parted(problem: PytestProblem) -> tuple[dict[str, str], dict[str, str]]:
    """The suite's own files, which are never written to disk, and its support files."""
    tests: dict[str, str] = {}
    files: dict[str, str] = {}
    for name, text in problem.files:
        (tests if is_of_the_suite(name) else files)[name] = text
    return {**tests, SUITE: problem.tests}, files


def is_of_the_suite(name: str) -> bool:
    """Whether pytest's defaults take the file as a test file."""
    return name == "conftest.py" or (name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")))


def _shape(tests: dict[str, str], files: dict[str, str]) -> Shape:
    own = tuple(name.removesuffix(".py").partition("/")[0] for name in files if name.endswith(".py"))
    return shape_of(tuple(tests.items()), own)


def _bad_name(names: list[str]) -> str:
    for name in names:
        parts = name.split("/")
        if not all(parts) or ".." in parts or "." in parts or "\0" in name or name == "solution.py":
            return f"a file cannot be named {name!r}"
    return ""
