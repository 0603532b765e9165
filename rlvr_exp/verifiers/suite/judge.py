"""What a run of a suite comes to: records, authenticated one by one, against what the suite's text promised.

Whatever is missing, out of order, without its code or more than promised is never a pass. The buckets' order: a rule
that was broken, a stream that is not the harness's own, a limit, the solution's own fault in loading, then the tests.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.sandbox.jobs import Cut, JobResult, frames
from rlvr_exp.sandbox.suite_keys import CODE_BYTES, code_of
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.suite.shape import Shape

FORGED, EARLY = "forged-report", "exits-early"
LOG = 800
_BUCKET_OF_END = {
    "cpu": "timeout",
    "wall": "timeout",
    "memory": "memory",
    "output": "output_limit",
    "lost": "runtime_error",
}
_BUCKET_OF_LOADING = {"parse": "parse", "exception": "runtime_error", "memory": "memory"}
_END_TEXTS = {
    "cpu": "stopped at its CPU limit after {0.cpu_s:.2f} s",
    "wall": "stopped at its wall clock limit after {0.wall_s:.1f} s",
    "memory": "stopped at its memory limit",
    "output": "wrote more than it may",
    "lost": "brought its worker down twice",
}


@dataclass
class _Run:
    """What the records say."""

    collected: list[str] = field(default_factory=list)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    loading: tuple[str, str] | None = None
    broken: str = ""
    rule: tuple[str, str] | None = None
    done: bool = False


def judge(shape: Shape, key: bytes, result: JobResult) -> Verdict:
    """The verdict on one run."""
    if result.end == "unavailable":
        return Verdict("no_verdict", log=f"no sandbox worker: {_tail(result.log)}")
    try:
        run = _read(key, result.records, whole=result.end == "exit")
    except ValueError as fault:
        return Verdict("rejected", rule=FORGED, seconds=result.cpu_s, log=f"the report is not the harness's: {fault}")
    names = _counted(shape, run.collected)
    passed = sum(run.outcomes.get(name, ("", ""))[0] == "passed" for name in names)
    total = max(len(names), sum(test.counted for test in shape.tests))
    if run.rule is not None:
        rule, detail = run.rule
        return Verdict("rejected", rule=rule, passed=passed, total=total, seconds=result.cpu_s, log=detail[:LOG])
    fault = _fault(shape, run, names, result)
    if fault is None:
        return Verdict("passed", passed=passed, total=total, seconds=result.cpu_s)
    bucket, log = fault
    if bucket == EARLY:
        return Verdict("rejected", rule=EARLY, passed=passed, total=total, seconds=result.cpu_s, log=log)
    passed = min(passed, total - 1) if total else 0
    return Verdict("failed", bucket, passed=passed, total=total, seconds=result.cpu_s, log=log[:LOG])


def _fault(shape: Shape, run: _Run, names: list[str], result: JobResult) -> tuple[str, str] | None:
    if result.end != "exit":
        return _BUCKET_OF_END[result.end], _END_TEXTS[result.end].format(result)
    if not run.done or result.status != 0:
        early = result.status == 0
        how = f"signal {-result.status}" if result.status < 0 else f"exit code {result.status}"
        text = f"ended before the suite did ({how}); printed: {_tail(result.log)}"
        memory = "MemoryError" in text and not early
        return (EARLY if early else "memory" if memory else "runtime_error"), text
    if run.loading is not None:
        kind, text = run.loading
        return _BUCKET_OF_LOADING[kind], f"solution: {text}"
    if run.broken:
        return _bucket_of(run.broken, "runtime_error"), run.broken
    for name in names:
        outcome, message = run.outcomes.get(name, ("error", "did not run"))
        if outcome != "passed":
            said = f"{outcome}: {message}" if outcome != "failed" else message
            return _bucket_of(message, "wrong_answer" if outcome == "failed" else "runtime_error"), f"{name}: {said}"
    seen = {_plain(name) for name in run.collected}
    missing = [test.name for test in shape.tests if test.counted and test.name not in seen]
    if missing:
        return "runtime_error", f"not collected: {', '.join(missing[:5])}"
    return None if names else ("runtime_error", "no test ran")


def _counted(shape: Shape, collected: list[str]) -> list[str]:
    """The collected tests that decide: all but those that the suite's own marks take out."""
    known = {test.name: test for test in shape.tests}
    return [name for name in collected if _plain(name) not in known or known[_plain(name)].counted]


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


def _read(key: bytes, records: bytes, whole: bool) -> _Run:
    """Raises ValueError where a record is not the harness's own. A limit may have cut the last one."""
    run = _Run()
    try:
        for number, part in enumerate(frames(records), 1):
            code, text = part[:CODE_BYTES], part[CODE_BYTES:]
            if code != code_of(key, number, text):
                raise ValueError(f"record {number} is somebody else's")
            if run.done or run.rule is not None:
                raise ValueError("a record after the last")
            _take(run, json.loads(text))
    except Cut:
        if whole:
            raise
    return run


def _take(run: _Run, record: list[Any]) -> None:
    kind, *rest = record
    if kind == "rule":
        run.rule = (rest[0], rest[1])
    elif kind == "solution":
        run.loading = (rest[0], rest[1])
    elif kind == "collected":
        run.collected = rest[0]
    elif kind == "test":
        run.outcomes[rest[0]] = (rest[1], rest[2])
    elif kind == "broken":
        run.broken = run.broken or rest[0]
    elif kind == "done":
        run.done = True


def _tail(log: bytes) -> str:
    return log[-200:].decode(errors="replace").strip()
