"""Solutions judged by pytest suites: real pytest, in the sandbox, the verdict in nobody's hands but the grader's.

A solution is the module `solution`; the suite is `test_solution.py` and what test files and conftest.py the problem
brings beside it. `passed` takes every promised test collected, run to its end and reported as passed by pytest, at
least one of them, and the session's regular end. The count is of tests, parameters apart; see rlvr_exp/docs/
pytest_verifier.md for skips, rules and figures.

Not covered in one process (`separate=False`): a solution that corrupts memory without ctypes (a fault of the
interpreter or of a package's native code, numpy's array interface) can do all that the process can; objects that
answer honestly in every probe and lie in the suite's own comparison; data files, which belong to both sides; what a
suite itself hands to the solution (callbacks, its own instances). A suite that patches modules itself is guarded less.
Not covered with `separate=True`: side effects on the test's process, classes and callbacks, which do not work; the
suite still trusts itself. Not covered in either: a wrong suite; see `validate`.
"""

import platform
import secrets
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from rlvr_exp.core.errors import InputError, Problem
from rlvr_exp.sandbox import packages, wire
from rlvr_exp.sandbox.jobs import Job, JobLimits, JobResult
from rlvr_exp.sandbox.pool import Pool, SandboxOptions
from rlvr_exp.tasks.problems import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.cache import CacheOptions
from rlvr_exp.verifiers.engine import Engine, Judged, Work
from rlvr_exp.verifiers.suite.judge import judge
from rlvr_exp.verifiers.suite.shape import Shape, shape_of

HARNESS = "rlvr_exp.sandbox.suite"
SUITE = "test_solution.py"
_RESULT_KB = 16 * 1024
"""All records of a suite together."""


class PytestSuite(Engine):
    """Judges `PytestProblem`s.

    Args:
        sandbox: workers, level, and the limits of a solution whose problem names none.
        cache: where verdicts are remembered; None: in memory.
        separate: run the solution in a process of its own, behind a module of its functions: plain data only.
        cpu_s, wall_s, memory_mb: limits in place of the sandbox node's; 0: that node's.
    """

    name = "pytest"
    version = "2"

    def __init__(
        self,
        sandbox: SandboxOptions,
        cache: CacheOptions | None = None,
        separate: bool = False,
        cpu_s: float = 0.0,
        wall_s: float = 0.0,
        memory_mb: int = 0,
    ):
        if find_spec("pytest") is None:
            remedy = "pip install 'rlvr_exp[pytest]'"
            raise InputError(Problem("verifier=pytest", "the package pytest is not installed", remedy=remedy))
        super().__init__(cache)
        usual = JobLimits.of(sandbox)
        self._limits = replace(
            usual,
            cpu_s=cpu_s or usual.cpu_s,
            wall_s=wall_s or usual.wall_s,
            memory_mb=memory_mb or usual.memory_mb,
            result_kb=_RESULT_KB,
        )
        self._separate = separate
        self._pool = Pool.of(sandbox, HARNESS, packages=True)

    def prepare(self, request: Request) -> Verdict | Work:
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
        content = wire.encode([candidate.text, list(tests.items()), list(files.items()), repr(limits), self._separate])
        return Work(content, (shape, tests, files, limits), request)

    def start(self, work: Work) -> Future[Judged]:
        shape, tests, files, limits = work.payload
        key, text = secrets.token_bytes(32), work.request.candidate.text
        job = {"key": key, "tests": tests, "files": files, "solution": "" if self._separate else text}
        job |= {"imports": list(shape.imports), "patches": shape.patches, "separate": self._separate}
        peer = wire.encode({"solution": text, "files": files}) if self._separate else b""
        judged: Future[Judged] = Future()

        def finish(done: Future[JobResult]) -> None:
            try:
                result = done.result()
                judged.set_result(Judged(judge(shape, key, result), lasting=result.lasting))
            except BaseException as fault:  # told to whoever waits: the pool's thread has nobody to tell
                judged.set_exception(fault)

        self._pool.submit(Job(wire.encode(job), limits, peer)).add_done_callback(finish)
        return judged

    def tool(self) -> Mapping[str, str]:
        return {
            "python": platform.python_version(),
            "pytest": metadata.version("pytest"),
            "packages": packages.digest(),
        }

    def isolation(self) -> dict[str, Any]:
        return self._pool.isolation()

    def close(self) -> None:
        self._pool.close()
        super().close()


def _parted(problem: PytestProblem) -> tuple[dict[str, str], dict[str, str]]:
    """The suite's own files, which are never written to disk, and those beside it."""
    tests, files = {}, {}
    for name, text in problem.files:
        (tests if is_of_the_suite(name) else files)[name] = text
    return {**tests, SUITE: problem.tests}, files


def is_of_the_suite(name: str) -> bool:
    """By pytest's own defaults."""
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
