"""The verdict on a run of a suite: the records of the suite's process compared with the tests its text promises.

A run with missing or surplus tests never passes. The buckets' order: a limit, a fault of the suite, a fault in loading
the solution, an object in place of plain data, then the tests.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.sandbox.pool.job_queue import Cut, JobResult, frames
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.suite.shape import Shape

LOG = 800
_BUCKET_OF_END = {
    "cpu": "timeout",
    "wall": "timeout",
    "memory": "memory",
    "output": "output_limit",
    "lost": "runtime_error",
}
_BUCKET_OF_LOADING = {"parse": "parse", "exception": "runtime_error", "memory": "memory"}
_FORGED = (TypeError, ValueError, LookupError, RecursionError)
"""What a record raises that is none of the harness's."""
_END_TEXTS = {
    "cpu": "stopped at its CPU limit after {0.cpu_s:.2f} s",
    "wall": "stopped at its wall clock limit after {0.wall_s:.1f} s",
    "memory": "stopped at its memory limit",
    "output": "wrote more than it may",
    "lost": "brought its worker down twice",
}


@dataclass
class Run:
    """The content of a run's records."""

    result: JobResult
    collected: list[str] = field(default_factory=list)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    loading: tuple[str, str] | None = None
    broken: str = ""
    fault: str = ""
    """A fault of the suite itself."""
    wrong: str = ""
    profile: dict[str, int] = field(default_factory=dict)
    decided: tuple[int, int] = (0, 0)
    """Assertions that the solution's own comparison decided, and all that held."""
    done: bool = False


def read(result: JobResult) -> Run:
    """The records of one run. A limit may have cut the last record; one that no harness writes is a candidate's or a suite's."""
    run = Run(result)
    try:
        for part in frames(result.records):
            _take(run, json.loads(part))
    except Cut:
        run.done = False
    except _FORGED:
        run.done, run.broken = True, run.broken or "it wrote into the records of its judge"
    return run


def judge(shape: Shape, run: Run) -> Verdict:
    """The verdict on one run."""
    result = run.result
    if result.end == "unavailable":
        return Verdict("no_verdict", log=f"no sandbox worker: {_tail(result.log)}")
    if run.fault:
        return Verdict("no_verdict", log=f"the suite's own fault: {run.fault}"[:LOG])
    names = _counted(shape, run.collected)
    passed = sum(run.outcomes.get(name, ("", ""))[0] == "passed" for name in names)
    total = max(len(names), sum(test.counted for test in shape.tests))
    fault = _fault(shape, run, names, result)
    own, held = run.decided
    counts: dict[str, Any] = {"total": total, "seconds": result.cpu_s, "assertions": held, "own_assertions": own}
    if fault is None:
        return Verdict("passed", passed=passed, **counts)
    bucket, log = fault
    return Verdict("failed", bucket, passed=min(passed, total - 1) if total else 0, log=log[:LOG], **counts)


def _fault(shape: Shape, run: Run, names: list[str], result: JobResult) -> tuple[str, str] | None:
    if result.end != "exit":
        return _BUCKET_OF_END[result.end], _END_TEXTS[result.end].format(result)
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


def _take(run: Run, record: list[Any]) -> None:
    kind, *rest = record
    if kind == "solution":
        run.loading = (_text(rest[0]) if rest[0] in _BUCKET_OF_LOADING else "exception", _text(rest[1]))
    elif kind == "collected":
        run.collected = [*map(_text, rest[0])]
    elif kind == "test":
        run.outcomes[_text(rest[0])] = (_text(rest[1]), _text(rest[2]))
    elif kind == "decided":
        run.decided = (int(rest[0]), int(rest[1]))
    elif kind in ("broken", "fault", "wrong"):
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
