"""Finds references that do something else when they run again. Tests are judged by what a reference returns, so that one that draws
numbers, reads the clock or depends on the order of a set would make them true by chance."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from rlvr_exp.tasks.base import Candidate, Domain, Task, WritesTests
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict, Verifier
from rlvr_exp.verifiers.compare import equal
from rlvr_exp.verifiers.futures import WINDOW

UNSTEADY = "it does something else when it runs again"
_RUNS = 2


def unsteady(domain: Domain, verifier: Verifier, golds: Sequence[tuple[Task, Candidate]]) -> dict[str, Verdict]:
    """By task id the verdict on a gold whose two new runs differ, or of which one does not pass.

    Nothing is run where the domain's tasks have no tests written for them, or the verifier keeps verdicts alone.
    """
    inner = getattr(verifier, "inner", verifier)
    if not (isinstance(domain, WritesTests) and isinstance(verifier, Executor) and isinstance(inner, Executor)):
        return {}
    found: dict[str, Verdict] = {}
    for first in range(0, len(golds), WINDOW):
        for task, runs in _executed(verifier, golds[first : first + WINDOW]):
            if fault := _difference(*runs):
                found[task.id] = Verdict("failed", "wrong_answer", log=f"{UNSTEADY}: {fault}")
    return found


def _executed(
    executor: Executor, golds: Sequence[tuple[Task, Candidate]]
) -> Iterator[tuple[Task, tuple[Execution, Execution]]]:
    pending: list[tuple[Task, list[Future[Execution]]]] = []
    for task, candidate in golds:
        request = Request(task.problem, candidate)
        pending.append((task, [executor.execute(request) for _ in range(_RUNS)]))
    for task, runs in pending:
        one, other = (run.result() for run in runs)
        yield task, (one, other)


def _difference(one: Execution, other: Execution) -> str:
    """How two runs differ, in a line; empty where they do not."""
    failed = next((run.verdict for run in (one, other) if run.verdict.outcome != "passed"), None)
    if failed is not None:
        return f"{failed.reason} {failed.log[:200]}".strip()
    if len(one.outputs) != len(other.outputs):
        return f"{len(one.outputs)} and {len(other.outputs)} outputs"
    pairs = zip(one.outputs, other.outputs, strict=True)
    return next((f"{str(a)[:60]}, then {str(b)[:60]}" for a, b in pairs if not equal(a, b) and repr(a) != repr(b)), "")
