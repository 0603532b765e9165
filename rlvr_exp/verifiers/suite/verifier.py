"""Verifies solutions by pytest suites: real pytest in one sandboxed process, the solution in another, behind a bridge.

A solution is the module `solution`; the suite is `test_solution.py` and the test files and conftest.py that the
problem adds to it. `passed` requires every promised test collected, run to its end and reported as passed by pytest, at least
one test, and the session's regular end. The count is of tests, parameters apart;
rlvr_exp/docs/verifiers.md describes the bridge and skips.

If a problem has a reference, its own run over the bridge comes first, once: if it returns plain data, a candidate must
return plain data in the same place, and a suite that the reference does not pass gives no verdicts. Not covered: a
wrong suite (see `validate`); with `process="shared"` whatever a solution does to the shared interpreter.

A verdict compares the records of the suite's process with the tests that its text promises. A run with missing or
surplus tests never passes. The buckets' order: a limit, a fault of the suite, a fault in loading the solution, an object
in place of plain data, then the tests.
"""

import base64
import hashlib
import json
import platform
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.jobs import Cut, Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.link import packages_digest
from rlvr_exp.sandbox.pool import Pool
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import BUCKET_OF_END, CachedVerifier, Judgement, VerificationJob
from rlvr_exp.verifiers.futures import then
from rlvr_exp.verifiers.suite.shape import Shape, Uses, shape_of, uses_of

HARNESS = "rlvr_exp.sandbox.harnesses.pytest.suite"
SUITE = "test_solution.py"
_RESULT_KB = 16 * 1024
"""Size limit of all records of a suite together."""
_BOM = "\ufeff"
_PROFILES = 4096
"""References whose runs are cached."""
_COMPILED = 256
"""Compiled suites that are kept."""
LOG = 800
_BUCKET_OF_LOADING = {"parse": "parse", "exception": "runtime_error", "memory": "memory"}
_FORGED = (TypeError, ValueError, LookupError, RecursionError)
"""Exceptions of a record that is none of the harness's."""
_END_TEXTS = {
    "cpu": "stopped at its CPU limit after {0.cpu_s:.2f} s",
    "wall": "stopped at its wall clock limit after {0.wall_s:.1f} s",
    "memory": "stopped at its memory limit",
    "output": "wrote more than it may",
    "lost": "brought its worker down twice",
}


@dataclass
class RecordedRun:
    """The content of a run's records."""

    result: JobResult
    collected: list[str] = field(default_factory=list)
    left_out: frozenset[str] = frozenset()
    """Tests that marks of their parameters skip or let fail."""
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    loading: tuple[str, str] | None = None
    broken: str = ""
    fault: str = ""
    """A fault of the suite itself."""
    wrong: str = ""
    effects: str = ""
    """Effects on the suite's process that the reference does not have."""
    profile: dict[str, Any] = field(default_factory=dict)
    compiled: bytes = b""
    """The suite for its next runs: the first record, sent before the solution is there."""
    decided: tuple[int, int] = (0, 0)
    """Assertions that the solution's own comparison decided, and all that held."""
    done: bool = False


def read(result: JobResult) -> RecordedRun:
    """The records of one run. A limit may have cut the last record. A candidate or a suite may have forged one."""
    run = RecordedRun(result)
    try:
        for index, part in enumerate(frames(result.records)):
            record = json.loads(part)
            if index == 0 and record[0] == "compiled":
                run.compiled = base64.b64decode(record[1])
            _take(run, record)
    except Cut:
        run.done = False
    except _FORGED:
        run.done, run.broken = True, run.broken or "it wrote into the records of its judge"
    return run


def judge(shape: Shape, run: RecordedRun, skipped: frozenset[str] = frozenset()) -> Verdict:
    """The verdict on one run. `skipped`: tests that do not count, because the reference's run skipped them."""
    result = run.result
    if result.end == "unavailable":
        return Verdict("no_verdict", log=f"no sandbox worker: {_tail(result.log)}")
    if run.fault:
        return Verdict("no_verdict", log=f"the suite's own fault: {run.fault}"[:LOG])
    names = [name for name in _counted(shape, run) if name not in skipped]
    passed = sum(run.outcomes.get(name, ("", ""))[0] == "passed" for name in names)
    total = max(len(names), sum(test.counted for test in shape.tests))
    fault = _fault(shape, run, names, result)
    own, held = run.decided
    counts: dict[str, Any] = {"total": total, "seconds": result.cpu_s, "assertions": held, "own_assertions": own}
    if fault is None:
        return Verdict("passed", passed=passed, **counts)
    bucket, log = fault
    return Verdict("failed", bucket, passed=min(passed, total - 1) if total else 0, log=log[:LOG], **counts)


def _fault(shape: Shape, run: RecordedRun, names: list[str], result: JobResult) -> tuple[str, str] | None:
    if result.end != "exit":
        return BUCKET_OF_END[result.end], _END_TEXTS[result.end].format(result)
    if not run.done or result.status != 0:
        how = f"signal {-result.status}" if result.status < 0 else f"exit code {result.status}"
        text = f"ended before the suite did ({how}); printed: {_tail(result.log)}"
        return ("memory" if "MemoryError" in text else "runtime_error"), text
    if run.loading is not None:
        kind, text = run.loading
        return _BUCKET_OF_LOADING[kind], f"solution: {text}"
    if run.wrong:
        return "wrong_answer", run.wrong
    if run.broken:
        return _bucket_of(run.broken, "runtime_error"), run.broken
    for name in names:
        outcome, message = run.outcomes.get(name, ("error", "did not run"))
        if outcome != "passed":
            text = f"{outcome}: {message}" if outcome != "failed" else message
            return _bucket_of(message, "wrong_answer" if outcome == "failed" else "runtime_error"), f"{name}: {text}"
    seen = {_plain(name) for name in run.collected}
    missing = [test.name for test in shape.tests if test.counted and test.name not in seen]
    if missing:
        return "runtime_error", f"not collected: {', '.join(missing[:5])}"
    return None if names else ("runtime_error", "no test ran")


def skipped_in(run: RecordedRun) -> frozenset[str]:
    """Tests that a reference's run skipped, or let fail."""
    return frozenset(name for name, (outcome, _) in run.outcomes.items() if outcome in ("skipped", "xfailed"))


def _counted(shape: Shape, run: RecordedRun) -> list[str]:
    """The collected tests that decide: all but those that the suite's own marks take out."""
    known = {test.name: test for test in shape.tests}

    def counts(name: str) -> bool:
        test = known.get(_plain(name))
        return test is None or (test.counted and not (test.marked_parameters and name in run.left_out))

    return [name for name in run.collected if counts(name)]


def _plain(name: str) -> str:
    return name.partition("[")[0]


def _bucket_of(message: str, usual: str) -> str:
    head = message.lstrip()
    if "cannot import name" in head or "ModuleNotFoundError" in head or "has no attribute" in head[:200]:
        return "resolve" if "solution" in head else "runtime_error"
    if head.startswith("MemoryError"):
        return "memory"
    plain = head.startswith(("assert", "AssertionError", "Failed", "ExceptionGroup"))
    return usual if usual != "wrong_answer" or plain else "runtime_error"


def _take(run: RecordedRun, record: list[Any]) -> None:
    kind, *rest = record
    if kind == "solution":
        run.loading = (_text(rest[0]) if rest[0] in _BUCKET_OF_LOADING else "exception", _text(rest[1]))
    elif kind == "collected":
        run.collected, run.left_out = [*map(_text, rest[0])], frozenset(map(_text, rest[1]))
    elif kind == "test":
        run.outcomes[_text(rest[0])] = (_text(rest[1]), _text(rest[2]))
    elif kind == "decided":
        run.decided = (int(rest[0]), int(rest[1]))
    elif kind in ("broken", "fault", "wrong", "effects"):
        setattr(run, kind, getattr(run, kind) or _text(rest[0]))
    elif kind == "profile":
        run.profile = dict(rest[0])
    elif kind == "done":
        run.done = True


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a record holds {type(value).__name__}, allowed text")
    return value


def _tail(log: bytes) -> str:
    return log[-200:].decode(errors="replace").strip()


@dataclass(frozen=True)
class _Suite:
    """One suite with its files, its limits and the facts in its text."""

    shape: Shape
    uses: Uses
    tests: dict[str, str]
    files: dict[str, str]
    limits: JobLimits

    @cached_property
    def digest(self) -> str:
        """Of its texts."""
        return hashlib.blake2b(wire.encode([*self.tests.items()]), digest_size=16).hexdigest()


def suite_tool() -> dict[str, str]:
    """The tools that verdicts by suites depend on; nothing if pytest is not installed."""
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
    version = "7"

    def __init__(self, sandbox: options.Sandbox, cache: options.Cache | None = None, **given: Any):
        if find_spec("pytest") is None:
            remedy = "pip install 'rlvr_exp[pytest]'"
            raise InputError(InputProblem("verifier=pytest", "the package pytest is not installed", remedy=remedy))
        super().__init__(cache, sandbox, **given)
        self._limits = replace(JobLimits.of(sandbox).named_by(self), result_kb=_RESULT_KB)
        self._shared = self.process == "shared"
        self._profiles: OrderedDict[bytes, Future[RecordedRun]] = OrderedDict()
        self._compiled: OrderedDict[str, bytes] = OrderedDict()
        self._lock_profiles = threading.Lock()
        # A lock of its own: a run that has ended already is read inside of `_profile`.
        self._lock_compiled = threading.Lock()
        self._pool = Pool.of(sandbox, HARNESS, packages=True)

    def prepare(self, request: Request) -> Verdict | VerificationJob:
        problem, candidate = request.problem, request.candidate
        if not isinstance(problem, PytestProblem):
            return Verdict("no_verdict", log=f"the pytest verifier takes a PytestProblem, not {type(problem).__name__}")
        # The suite's own files are never written to disk; its support files are.
        given = {name: text.removeprefix(_BOM) for name, text in problem.files}
        tests = {name: text for name, text in given.items() if is_of_the_suite(name)}
        tests[SUITE] = problem.tests.removeprefix(_BOM)
        files = {name: text for name, text in given.items() if not is_of_the_suite(name)}
        modules = tuple(name.removesuffix(".py").partition("/")[0] for name in files if name.endswith(".py"))
        shape = shape_of(tuple(tests.items()), modules)
        if shape.fault or (bad := _bad_name([*tests, *files])):
            return Verdict("no_verdict", log=f"the suite cannot be run: {shape.fault or bad}")
        if candidate.text is None:
            total = sum(test.counted for test in shape.tests)
            return Verdict("failed", "parse", total=total, log=candidate.fault or "no program in the answer")
        limits = self._limits.named_by(problem.limits)
        parts = [list(tests.items()), list(files.items()), repr(limits), self._shared, problem.reference]
        suite = _Suite(shape, uses_of(tuple(tests.values())), tests, files, limits)
        text = candidate.text.removeprefix(_BOM)
        return VerificationJob(wire.encode([text, *parts]), (suite, wire.encode(parts)), request)

    def start(self, work: VerificationJob) -> Future[Judgement]:
        suite, known_by = work.payload
        text = (work.request.candidate.text or "").removeprefix(_BOM)
        reference = work.request.problem.reference.removeprefix(_BOM)
        if not reference or self._shared:
            return then(self._run(suite, text), lambda run: self._judged(suite, run))
        profile = self._profile(suite, known_by, reference)

        def after(first: RecordedRun) -> Judgement | Future[Judgement]:
            judgement = self._judged(suite, first, skipped_in(first))
            if same_program(text, reference):
                return judgement
            if judgement.verdict.outcome != "passed":
                log = f"the suite cannot judge: its reference does not pass ({judgement.verdict.log})"
                return Judgement(Verdict("no_verdict", log=log), cacheable=False)
            return then(self._run(suite, text, first.profile), partial(self._beside, suite, text, first))

        return then(profile, after)

    def _beside(
        self, suite: _Suite, text: str | None, first: RecordedRun, run: RecordedRun
    ) -> Judgement | Future[Judgement]:
        """The judgement of a run beside a reference. A solution that passes without its effects has to pass with them, too: a
        suite may check that there are none."""
        judgement = self._judged(suite, run, skipped_in(first))
        if not run.effects:
            return judgement
        if judgement.verdict.outcome != "passed":
            return _of_effects(judgement, run.effects)
        again = self._run(suite, text, first.profile, strict=False)
        return then(again, lambda last: _of_effects(self._judged(suite, last, skipped_in(first)), run.effects))

    def _profile(self, suite: _Suite, known_by: bytes, reference: str) -> Future[RecordedRun]:
        """The reference's run, which records the kind of value at each place; once, as long as it is cached."""
        with self._lock_profiles:
            known = self._profiles.get(known_by)
            if known is None or (known.done() and not known.result().result.reproducible):
                first = self._run(suite, reference, recording=True)
                known = self._profiles[known_by] = then(first, partial(self._unexamined, suite, reference))
                while len(self._profiles) > _PROFILES:
                    self._profiles.popitem(last=False)
            return known

    def _unexamined(self, suite: _Suite, reference: str, run: RecordedRun) -> RecordedRun | Future[RecordedRun]:
        """The reference's run, once more if it may have failed because its comparisons were examined."""
        if not run.profile.get("examined") or judge(suite.shape, run, skipped_in(run)).outcome == "passed":
            return run
        return self._run(suite, reference, recording=True, examines=False)

    def _run(
        self,
        suite: _Suite,
        text: str | None,
        profile: dict[str, Any] | None = None,
        recording: bool = False,
        strict: bool = True,
        examines: bool = True,
    ) -> Future[RecordedRun]:
        """One solution under one suite.

        Args:
            strict: effects that the reference does not have are not applied.
            examines: comparisons of the solution's own are examined, unless they were not for the reference.
        """
        uses = suite.uses
        both = {"solution": text, "words": uses.words, "threads": uses.threads}
        job: dict[str, Any] = both | {"tests": suite.tests, "files": suite.files, "imports": suite.shape.imports}
        job |= {"patches": suite.shape.patches}
        job |= {"stars": uses.stars, "classes": uses.classes, "profile": profile, "recording": recording}
        examines = examines and (profile is None or profile["examined"] > 0)
        job |= {"strict": strict, "examines": examines, "compiled": self._compiled.get(suite.digest, b"")}
        peer = b"" if self._shared else wire.encode(both)
        return then(self._pool.submit(Job(wire.encode(job), suite.limits, peer)), partial(self._read, suite))

    def _read(self, suite: _Suite, result: JobResult) -> RecordedRun:
        run = read(result)
        run.result = replace(result, records=b"")  # a reference's run is kept
        if run.compiled:
            with self._lock_compiled:
                self._compiled[suite.digest], run.compiled = run.compiled, b""
                while len(self._compiled) > _COMPILED:
                    self._compiled.popitem(last=False)
        return run

    def _judged(self, suite: _Suite, run: RecordedRun, skipped: frozenset[str] = frozenset()) -> Judgement:
        verdict = judge(suite.shape, run, skipped)
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


def _of_effects(judgement: Judgement, effects: str) -> Judgement:
    """A wrong answer of a solution that changes what the suite holds has its own bucket."""
    verdict = judgement.verdict
    if verdict.bucket != "wrong_answer":
        return judgement
    log = f"an effect that the reference does not have: {effects}\n{verdict.log}"[:LOG]
    return replace(judgement, verdict=replace(verdict, bucket="side_effect", log=log))


def same_program(text: str | None, reference: str) -> bool:
    """Whether a solution is the reference; a reader of completions may drop empty lines at its ends."""
    return text is not None and text.strip("\n") == reference.strip("\n")


def is_of_the_suite(name: str) -> bool:
    """Whether pytest's defaults take the file as a test file."""
    return name == "conftest.py" or (name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")))


def _bad_name(names: list[str]) -> str:
    for name in names:
        parts = name.split("/")
        if not all(parts) or ".." in parts or "." in parts or "\0" in name or name == "solution.py":
            return f"a file cannot be named {name!r}"
    return ""
