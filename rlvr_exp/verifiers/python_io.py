"""Python functions judged on cases: the candidate runs in the sandbox, the comparing is done here.

Owns the buckets of a Python verdict and their order: a limit that ended the candidate comes first, then a fault in
loading, then the first case that failed. Expected values stay in this process. Cases answered before a limit struck
still count.

Not covered: the harness shares the candidate's process, so a candidate can send any values it likes, those of later
cases included; they are held against expected values that it does not know. Module state lasts from case to case.
No packages beside the standard library are there.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol

from rlvr_exp.sandbox import calls, wire
from rlvr_exp.sandbox.jobs import Job, JobLimits, JobResult, frames
from rlvr_exp.sandbox.pool import Pool
from rlvr_exp.tasks.problems import PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.compare import equal

_MEMORY_SLOTS = 50_000
"""Verdicts kept in memory; about 1 KB each."""
_BUCKET_OF_ERROR = {
    "parse": "parse",
    "resolve": "resolve",
    "exception": "runtime_error",
    "memory": "memory",
    "output": "output_limit",
    "type": "wrong_answer",
}
_BUCKET_OF_END = {"cpu": "timeout", "wall": "timeout", "output": "output_limit", "lost": "runtime_error"}


class SandboxOptions(Protocol):
    """The `sandbox` node of a verifier's configuration."""

    workers: int
    cpu_s: float
    wall_s: float
    memory_mb: int
    output_kb: int


class PythonIO(Verifier):
    """Judges `PythonProblem`s.

    Args:
        sandbox: workers (0: one a core) and the limits of a candidate whose problem names none.
    """

    name = "python_io"
    version = "1"

    def __init__(self, sandbox: SandboxOptions):
        self._limits = JobLimits(sandbox.cpu_s, sandbox.wall_s, sandbox.memory_mb, sandbox.output_kb)
        self._pool = Pool(sandbox.workers)
        self._known: OrderedDict[bytes, Verdict] = OrderedDict()

    def verify(self, requests: Sequence[Request]) -> list[Verdict]:
        """Judge all, in order. Equal requests are judged once; copies and remembered verdicts say `cached`."""
        prepared = self._prepare(requests)
        fresh = {item.key: item for item in prepared if item.job is not None}
        results = self._pool.run([item.job for item in fresh.values()])
        judged = {item.key: _judge(item.request, result) for item, result in zip(fresh.values(), results, strict=True)}
        verdicts, first = [], dict.fromkeys(judged, True)
        for item in prepared:
            verdict = item.settled or judged.get(item.key) or self._known[item.key]
            copied = item.settled is None and not first.pop(item.key, False)
            verdicts.append(replace(verdict, cached=True) if copied else verdict)
        self._remember(judged, fresh, results)
        return verdicts

    def isolation(self) -> dict[str, Any]:
        """For the manifest: what the sandbox isolates on this machine, and what it does not."""
        return self._pool.isolation()

    def close(self) -> None:
        self._pool.close()

    def _prepare(self, requests: Sequence[Request]) -> list["_Prepared"]:
        digests: dict[int, bytes | str] = {}
        for request in requests:
            if id(request.problem) not in digests:
                digests[id(request.problem)] = _digest(request.problem)
        return [self._prepare_one(request, digests[id(request.problem)]) for request in requests]

    def _prepare_one(self, request: Request, digest: bytes | str) -> "_Prepared":
        problem, candidate = request.problem, request.candidate
        if isinstance(digest, str):
            return _Prepared(request, settled=Verdict("no_verdict", log=digest))
        if candidate.text is None:
            fault = candidate.fault or "no program in the answer"
            return _Prepared(request, settled=Verdict("failed", "parse", total=len(problem.cases), log=fault))
        limits = self._limits_of(problem)
        text = candidate.text.encode("utf-8", "surrogatepass")
        key = blake2b(digest + repr((self.version, limits)).encode() + text, digest_size=16).digest()
        if key in self._known:
            self._known.move_to_end(key)
            return _Prepared(request, key)
        cases = [case.args for case in problem.cases]
        payload = calls.pack(candidate.text, problem.entry_point, cases, limits.result_kb << 10)
        return _Prepared(request, key, Job(payload, limits))

    def _limits_of(self, problem: PythonProblem) -> JobLimits:
        named, usual = problem.limits, self._limits
        return JobLimits(
            named.cpu_s or usual.cpu_s,
            named.wall_s or usual.wall_s,
            named.memory_mb or usual.memory_mb,
            usual.output_kb,
        )

    def _remember(self, judged: dict[bytes, Verdict], fresh: Iterable[bytes], results: Sequence[JobResult]) -> None:
        for key, result in zip(fresh, results, strict=True):
            if result.end not in ("wall", "lost", "unavailable"):  # these may have been the machine's mood
                self._known[key] = judged[key]
        while len(self._known) > _MEMORY_SLOTS:
            self._known.popitem(last=False)


@dataclass(frozen=True)
class _Prepared:
    request: Request
    key: bytes = b""
    job: Job | None = None
    settled: Verdict | None = None


def _digest(problem: PythonProblem) -> bytes | str:
    """A problem's content, types told apart; or why it cannot be judged."""
    if not problem.cases:
        return "the problem has no cases"
    try:
        cases = [[case.args, case.expected] for case in problem.cases]
        content = wire.encode([problem.entry_point, cases, problem.atol, problem.strict])
    except ValueError as fault:
        return f"the problem is not plain data: {fault}"
    return blake2b(content, digest_size=16).digest()


def _judge(request: Request, result: JobResult) -> Verdict:
    problem: PythonProblem = request.problem
    total, seconds = len(problem.cases), result.cpu_s
    if result.end == "unavailable":
        reason = result.log.decode(errors="replace")
        return Verdict("no_verdict", total=total, log=f"no sandbox worker: {reason}")
    answers = _Answers(problem, result.records)
    if result.end == "exit" and answers.passed == total:
        return Verdict("passed", passed=total, total=total, seconds=seconds)
    bucket, log = answers.first_fault()
    if result.end != "exit":
        bucket, log = _BUCKET_OF_END[result.end], _end_text(result)
    elif bucket is None:
        bucket, log = "runtime_error", _end_text(result)
    return Verdict("failed", bucket, passed=min(answers.passed, total), total=total, seconds=seconds, log=log)


def _end_text(result: JobResult) -> str:
    texts = {
        "cpu": f"stopped at its CPU limit after {result.cpu_s:.2f} s",
        "wall": f"stopped at its wall clock limit after {result.wall_s:.1f} s",
        "output": "wrote more than it may",
        "lost": "brought its worker down twice",
    }
    how = f"signal {-result.status}" if result.status < 0 else f"exit code {result.status}"
    tail = result.log[-200:].decode(errors="replace").strip()
    text = texts.get(result.end, f"ended before its last case ({how})")
    return f"{text}; printed: {tail}" if tail and result.end == "exit" else text


class _Answers:
    """A candidate's records held against the expected values. Records are data from an enemy: in order or nothing."""

    def __init__(self, problem: PythonProblem, records: bytes):
        self.passed = 0
        self._problem = problem
        self._fault: tuple[str | None, str] = (None, "")
        self._next = 0
        self._finished = False
        try:
            for frame in frames(records):
                self._take(wire.decode(frame))
        except ValueError as fault:
            self._note("runtime_error", f"its results are damaged: {fault}")

    def first_fault(self) -> tuple[str | None, str]:
        return self._fault

    def _take(self, record: Any) -> None:
        if type(record) is not list or not record or self._finished:
            raise ValueError("not a record")
        if record == ["done"]:
            self._finished = True
        elif record[0] == "value" and len(record) == 3:
            self._value(self._case(record[1]), record[2])
        elif record[0] == "error" and len(record) == 4 and type(record[3]) is str:
            self._error(record[1], record[2], record[3])
        else:
            raise ValueError("not a record")

    def _case(self, index: Any) -> int:
        if type(index) is not int or index != self._next or index >= len(self._problem.cases):
            raise ValueError("a case out of order")
        self._next += 1
        return index

    def _value(self, index: int, got: Any) -> None:
        problem, case = self._problem, self._problem.cases[index]
        if equal(got, case.expected, problem.strict, problem.atol):
            self.passed += 1
            return
        call = f"{problem.entry_point}({', '.join(_short(arg) for arg in case.args)})"
        self._note("wrong_answer", f"case {index}: {call} gave {_short(got)}, expected {_short(case.expected)}")

    def _error(self, index: Any, kind: Any, text: str) -> None:
        if type(kind) is not str or kind not in _BUCKET_OF_ERROR:
            raise ValueError("an unknown error")
        if index == calls.LOADING and type(index) is int:
            self._finished = True
            self._note(_BUCKET_OF_ERROR[kind], text[:400])
        else:
            self._note(_BUCKET_OF_ERROR[kind], f"case {self._case(index)}: {text[:400]}")

    def _note(self, bucket: str, log: str) -> None:
        if self._fault[0] is None:
            self._fault = (bucket, log)


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # forged depth, or an int too long to print
        return "<too large to show>"
    return text if len(text) <= 120 else f"{text[:60]} ... {text[-50:]}"
