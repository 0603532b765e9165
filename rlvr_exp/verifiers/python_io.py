"""Verifies Python functions and programs on cases: the candidate runs in the sandbox, values are compared here.

Owns the buckets of a Python verdict and their order: a limit that ended the candidate comes first, then a fault in
loading, then the first case that failed. Expected values stay in this process. Cases answered before a limit was
reached still count, but for a flood of output. All of a candidate's cases run in one process, each in a freshly
executed module; `passed` requires a right answer to every case, the harness's record of the end, and exit status 0.

Not covered: the harness shares the candidate's process, so a candidate can send any values it likes, those of later
cases included, and can read the inputs of all its cases; values are compared with expected values that it does not
know. State that is not restored between cases is listed in rlvr_exp/sandbox/harnesses/python/state_reset.py. An object of an
installed package is not plain data and equals nothing, but for numpy's scalars. A verdict at the CPU limit is cached,
though it may be chance for a candidate that needs just about that much.
"""

import math
import platform
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from rlvr_exp.config import verifier as options
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python import calls
from rlvr_exp.sandbox.harnesses.python.reporter import LOADING
from rlvr_exp.sandbox.jobs import Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.link import packages_digest
from rlvr_exp.sandbox.pool import Pool
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict
from rlvr_exp.verifiers.compare import differing_output, differing_value, equal, same_output, short
from rlvr_exp.verifiers.engine import BUCKET_OF_END, CachedVerifier, Judgement, VerificationJob
from rlvr_exp.verifiers.futures import completed_future, then

BUCKETS = {
    "parse": "parse",
    "resolve": "resolve",
    "exception": "runtime_error",
    "memory": "memory",
    "output": "output_limit",
    "type": "wrong_answer",
    "timeout": "timeout",
}
"""The bucket of each kind of error that a harness reports."""
_MAX_TEXT = 400


class CaseRecords:
    """The results of all cases. `records`: the bytes from the result pipe. `passed`: cases with the right answer."""

    def __init__(self, problem: PythonProblem, records: bytes):
        self.passed = 0
        self.bucket: str | None = None
        """The bucket of the first fault, None if there is none."""
        self.log = ""
        self.finished = False
        """Whether every case was reported, and then the end."""
        self.next = 0
        """The first case without a report."""
        self._problem, self._closed = problem, False
        self.outputs: list[Any] = [None] * len(problem.cases)
        """The value of each case; None if none was returned."""
        self.ended: set[int] = set()
        """The cases that returned."""
        self.raised: list[tuple[str, ...]] = [()] * len(problem.cases)
        """The built-in classes of the exception of each case; empty if none was raised."""
        self.buckets = [""] * len(problem.cases)
        """The bucket of each case that did not return; empty for one without a report."""
        try:
            for frame in frames(records):
                self._take(wire.decode(frame))
        except ValueError as fault:
            self._note("runtime_error", f"its results are damaged: {fault}"[:_MAX_TEXT])

    def call(self, index: int) -> str:
        """A case in words: its input or its call."""
        case = self._problem.cases[index]
        if isinstance(case, StdinCase):
            return f"case {index}, input {short(case.stdin)}"
        return f"case {index}: {self._problem.entry_point}({', '.join(map(short, case.args[:6]))})"

    def _take(self, record: Any) -> None:
        if type(record) is not list or not record or self._closed:
            raise ValueError("not a record")
        if record == ["done"]:
            self._closed, self.finished = True, self.next == len(self._problem.cases)
        elif record[0] == "value" and len(record) == 3:
            self._value(self._case(record[1]), record[2])
        elif record[0] == "error" and len(record) >= 4 and all(type(one) is str for one in record[3:]):
            self._error(record[1], record[2], record[3][:_MAX_TEXT], record[4:])
        else:
            raise ValueError("not a record")

    def _case(self, index: Any) -> int:
        if type(index) is not int or index != self.next or index >= len(self._problem.cases):
            raise ValueError("a case out of order")
        self.next += 1
        return index

    def _value(self, index: int, got: Any) -> None:
        problem, case = self._problem, self._problem.cases[index]
        self.outputs[index] = got
        self.ended.add(index)
        if isinstance(case, Case):
            right = equal(got, case.expected, *problem.comparison)
        else:
            right = type(got) is str and same_output(got, case.expected_stdout, *problem.comparison)
        if right:
            self.passed += 1
        elif self.bucket is None:
            if isinstance(case, Case):
                difference = f" {differing_value(got, case.expected, *problem.comparison)}"
            elif type(got) is not str:
                difference = ": its output is not UTF-8 text"
            else:
                difference = f": {differing_output(got, case.expected_stdout, *problem.comparison)}"
            self._note("wrong_answer", self.call(index) + difference)

    def _error(self, index: Any, kind: Any, text: str, names: Sequence[str]) -> None:
        if type(kind) is not str or kind not in BUCKETS:
            raise ValueError("an unknown error")
        if type(index) is int and index == LOADING and self.next == 0:
            self._closed = True
            self.buckets = [BUCKETS[kind]] * len(self.buckets)
            self._note(BUCKETS[kind], text)
        else:
            case = self._case(index)
            self.raised[case], self.buckets[case] = tuple(names), BUCKETS[kind]
            self._note(BUCKETS[kind], f"case {case}: {text}")

    def _note(self, bucket: str, log: str) -> None:
        if self.bucket is None:
            self.bucket = bucket
            self.log = log.encode("utf-8", "backslashreplace").decode()


HARNESS = "rlvr_exp.sandbox.harnesses.python.calls"
_ENTRY_POINT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_PACKED_BYTES = 64 << 20
"""Number of packed problems that are kept; the problems themselves belong to the caller."""
_KILLED = -9


class PythonIO(CachedVerifier, Executor, options.PythonIO):
    """Judges `PythonProblem`s.

    Args:
        sandbox: workers (0: one a core), the level of isolation, and the limits of a candidate whose
            problem names none. CPU, wall clock and memory are those of all its cases together. A case above
            `case_cpu_s` fails with bucket `timeout` and the next case runs; a call into C that does not return runs to
            the candidate's limit.
    """

    name = "python_io"
    version = "6"

    def __init__(self, sandbox: options.Sandbox, cache: options.Cache | None = None, **given: Any):
        super().__init__(cache, sandbox, **given)
        self._limits = JobLimits.of(sandbox)
        self._pool = Pool.of(sandbox, HARNESS, self.packages)
        self._packing = threading.Lock()
        self._packed: OrderedDict[int, tuple[weakref.ref[PythonProblem], _Packed]] = OrderedDict()
        self._packed_bytes = 0

    def prepare(self, request: Request) -> Verdict | VerificationJob:
        return self._prepare(request, self.case_cpu_s)

    def _prepare(self, request: Request, case_cpu_s: float) -> Verdict | VerificationJob:
        problem, candidate = request.problem, request.candidate
        packed = self._pack(problem)
        if isinstance(packed, str):
            return Verdict("no_verdict", log=packed)
        if candidate.text is None:
            fault = candidate.fault or "no program in the answer"
            return Verdict("failed", "parse", total=len(problem.cases), log=fault)
        limits = self._limits.named_by(problem.limits)
        limits = replace(limits, result_kb=max(limits.result_kb, packed.result_kb))
        content = wire.encode([packed.digest, repr(limits), case_cpu_s, self.packages, candidate.text])
        payload = calls.pack(
            candidate.text,
            problem.entry_point,
            packed.cases,
            limits.result_kb << 10,
            (limits.output_kb << 10) // 2,
            case_cpu_s,
        )
        return VerificationJob(content, Job(payload, limits), request)

    def start(self, work: VerificationJob) -> Future[Judgement]:
        problem = work.request.problem
        return then(self._pool.submit(work.payload), lambda done: _judge(problem, done, _records(problem, done)))

    def execute(self, request: Request, case_cpu_s: float | None = None) -> Future[Execution]:
        """`case_cpu_s`: in place of the verifier's."""
        if (pool := self.ray_pool()) is not None:
            return pool.submit("execute", request, case_cpu_s, lost=_not_executed)
        prepared = self._prepare(request, self.case_cpu_s if case_cpu_s is None else case_cpu_s)
        if isinstance(prepared, Verdict):
            return completed_future(Execution(prepared, ()))

        def read(done: JobResult) -> Execution:
            records = _records(request.problem, done)
            verdict = _judge(request.problem, done, records).verdict
            ended = frozenset(records.ended)
            return Execution(verdict, tuple(records.outputs), tuple(records.raised), ended, tuple(records.buckets))

        return then(self._pool.submit(prepared.payload), read)

    def tool(self) -> Mapping[str, str]:
        seen = {"packages": packages_digest()} if self.packages else {}
        return {"python": platform.python_version()} | seen

    def isolation(self) -> dict[str, Any]:
        return self._pool.isolation()

    def close(self) -> None:
        self._pool.close()
        super().close()

    def _pack(self, problem: Any) -> "_Packed | str":
        """The part of a job that all candidates of a problem share, packed once for a batch."""
        with self._packing:
            known = self._packed.get(id(problem))
            if known is not None and known[0]() is problem:  # another problem may have got the id of a deleted problem
                self._packed.move_to_end(id(problem))
                return known[1]
        packed = _fault_of(problem) or _pack(problem)
        if isinstance(packed, _Packed):
            with self._packing:
                before = self._packed.pop(id(problem), None)
                self._packed[id(problem)] = (weakref.ref(problem), packed)
                self._packed_bytes += packed.size - (before[1].size if before else 0)
                while self._packed_bytes > _PACKED_BYTES:
                    self._packed_bytes -= self._packed.popitem(last=False)[1][1].size
        return packed


def _not_executed(why: str) -> Execution:
    return Execution(Verdict("no_verdict", log=why), ())


@dataclass(frozen=True)
class _Packed:
    digest: bytes
    """A digest of the problem without its limits, types distinguished."""
    cases: tuple[bytes, ...]
    result_kb: int
    """Size limit of the data to read and write: a power of two, so that a candidate learns nothing from it."""

    @property
    def size(self) -> int:
        return sum(map(len, self.cases)) + 1024


def _fault_of(problem: Any) -> str:
    """Why a problem cannot be judged."""
    if not isinstance(problem, PythonProblem):
        return f"python_io judges problems of Python functions and programs, got a {type(problem).__name__}"
    if not problem.cases:
        return "the problem has no cases"
    wanted = Case if problem.entry_point else StdinCase
    if not all(isinstance(case, wanted) for case in problem.cases):
        need = "calls (args, expected)" if problem.entry_point else "programs (stdin, expected_stdout)"
        return f"with entry_point {problem.entry_point!r} every case must be one of {need}"
    if problem.entry_point and not _ENTRY_POINT.fullmatch(problem.entry_point):
        return f"entry_point {problem.entry_point!r} is neither NAME nor CLASS.METHOD"
    for name, tolerance in (("atol", problem.atol), ("rtol", problem.rtol)):
        if not (math.isfinite(tolerance) and tolerance >= 0):
            return f"{name} must be finite and at least 0, got {tolerance}"
    return ""


def _pack(problem: PythonProblem) -> _Packed | str:
    content = [
        (case.args, case.expected) if isinstance(case, Case) else (case.stdin, case.expected_stdout)
        for case in problem.cases
    ]
    given, wanted = zip(*content, strict=True)
    try:
        cases = tuple(map(calls.pack_case, given))
        expected = wire.encode(wanted)
    except (ValueError, TypeError) as fault:
        return f"the problem is not plain data: {fault}"
    rules = wire.encode([problem.entry_point, *problem.comparison, len(cases)])
    digest = blake2b(b"".join((rules, *cases, expected)), digest_size=20).digest()
    room = 1 << 20
    while room < max(2 * len(expected), max(map(len, cases))):
        room *= 2
    return _Packed(digest, cases, room >> 10)


def _records(problem: PythonProblem, result: JobResult) -> CaseRecords:
    return CaseRecords(problem, b"" if result.end == "unavailable" else result.records)


def _judge(problem: PythonProblem, result: JobResult, records: CaseRecords) -> Judgement:
    total = len(problem.cases)
    if result.end == "unavailable":
        reason = result.log.decode(errors="replace")
        return Judgement(Verdict("no_verdict", total=total, log=f"no sandbox worker: {reason}"), cacheable=False)
    # Killed by none of its limits: memory ran out, perhaps that of the machine.
    cacheable = result.reproducible and not (result.end == "exit" and result.status == _KILLED)
    # How far a flood of output came before it was stopped is chance.
    counts: dict[str, Any] = {
        "passed": 0 if result.end == "output" else records.passed,
        "total": total,
        "seconds": result.cpu_s,
    }
    if result.end == "exit" and result.status == 0 and records.finished and records.passed == total:
        return Judgement(Verdict("passed", **counts), cacheable)
    bucket, log = records.bucket, records.log
    if result.end != "exit":
        bucket, log = BUCKET_OF_END[result.end], _end_text(result, records, total)
    elif bucket is None:
        bucket = "memory" if result.status == _KILLED else "runtime_error"
        log = _end_text(result, records, total)
    return Judgement(Verdict("failed", bucket, log=log, **counts), cacheable)


def _end_text(result: JobResult, records: CaseRecords, total: int) -> str:
    texts = {
        "cpu": f"stopped at its CPU limit after {result.cpu_s:.2f} s",
        "wall": f"stopped at its wall clock limit after {result.wall_s:.1f} s",
        "memory": "held more memory than it may",
        "output": "wrote more than it may",
        "lost": "brought its worker down twice",
    }
    how = f"signal {-result.status}" if result.status < 0 else f"exit code {result.status}"
    when = "after its last case" if records.next == total else "before its last case"
    text = texts.get(result.end, f"ended {when} ({how})")
    if records.next < total and result.end != "output":
        text += f", in {records.call(records.next)}"
    tail = result.log[-200:].decode(errors="replace").strip()
    return f"{text}; printed: {tail}" if tail and result.end == "exit" else text
