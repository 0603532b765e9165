"""Checks of the data before a run: reference answers pass, they give the same result when they run again, and tests
refuse stubs.

Training leaves out pytest suites that refuse their own reference answer or accept a stub program, and counts both. A
suite that inspects properties of a single process, such as the clock or the callers' frames, fails without a fault of
the candidate, so its task teaches nothing. A suite that accepts a program without bodies teaches the wrong thing.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import islice

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate, Domain, Task, WritesTests
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.rows import as_program
from rlvr_exp.tasks.mutants import stub_programs
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict, Verifier
from rlvr_exp.verifiers.compare import equal
from rlvr_exp.verifiers.futures import WINDOW

SHOWN = 5
"""Number of failures shown in full."""

UNSTEADY = "it does something else when it runs again"

_RUNS = 2

WEAK = "a hollow program passes"

EVERY = 50


def check_references(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], count: int, context: RunContext
) -> None:
    """Verify the references of the first `count` held-out tasks if tests can be written for the domain's answers. The
    references measure such tests.

    Raises:
        GuardStop: as `check_golds`.
    """
    if isinstance(domain, WritesTests):
        check_golds(domain, verifier, tasks, count, context, "held-out")


def check_golds(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], count: int, context: RunContext, of: str = "training"
) -> None:
    """Verify the reference answers of the first `count` tasks that have one.

    Args:
        of: the kind of tasks, in one word for the message.

    Raises:
        GuardStop: a reference answer does not pass, or is `unsteady`. The message names task, place in the data,
            verdict and log.
    """
    pairs = ((task, domain.gold_completion(task)) for task in tasks)
    golds = list(islice(((task, gold) for task, gold in pairs if gold is not None), count))
    if not golds:
        return
    context.progress(kind="phase", name="check golds", done=0, total=len(golds))
    failed = failing(domain, verifier, [(task, domain.parse(gold, task)) for task, gold in golds])
    refused = [(task, failed[task.id]) for task, _ in golds if task.id in failed]
    passed = 1 - len(refused) / len(golds)
    context.progress(kind="phase", name="check golds", done=len(golds), total=len(golds), success=passed)
    if refused:
        shown = "\n".join(f"{task.id}: {told(domain, task, verdict)}" for task, verdict in refused[:SHOWN])
        raise GuardStop(
            f"{len(refused)} of {len(golds)} gold answers of the {of} tasks do not pass:\n{shown}\n"
            "+stage=validate with the same data and verifier looks at all of them; mend the data or the verifier's "
            "options, or go on all the same with verifier.validate=0"
        )


def failing(domain: Domain, verifier: Verifier, golds: Sequence[tuple[Task, Candidate]]) -> dict[str, Verdict]:
    """By task id, the verdict on a reference answer that does not pass or is `unsteady`."""
    verdicts = verifier.verify([Request(task.problem, candidate) for task, candidate in golds])
    judged = list(zip(golds, verdicts, strict=True))
    failed = {task.id: verdict for (task, _), verdict in judged if verdict.outcome != "passed"}
    return failed | unsteady(domain, verifier, [one for one, verdict in judged if verdict.outcome == "passed"])


def told(domain: Domain, task: Task, verdict: Verdict) -> str:
    """Say why a reference answer does not pass, after the place of the fault in the data if the domain knows it."""
    refused = verdict.bucket == "wrong_answer" or verdict.outcome == "no_verdict"
    place = domain.gold_place(task, refused and not verdict.log.startswith(UNSTEADY))
    return f"{place}: {why(verdict)}" if place else why(verdict)


def why(verdict: Verdict) -> str:
    """A verdict other than `passed`, in one line."""
    reason = verdict.bucket or verdict.rule
    first = next((line.strip() for line in verdict.log.splitlines() if line.strip()), "")
    return f"{verdict.outcome}{f' ({reason})' if reason else ''}{f': {first[:200]}' if first else ''}"


def unsteady(domain: Domain, verifier: Verifier, golds: Sequence[tuple[Task, Candidate]]) -> dict[str, Verdict]:
    """By task id, the verdict on a reference answer if two further runs differ, or if one of them does not pass.

    Nothing runs if the domain writes no tests for its tasks, or if the verifier keeps only verdicts.
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
    """The difference of two runs, in one line. Empty if they agree."""
    failed = next((run.verdict for run in (one, other) if run.verdict.outcome != "passed"), None)
    if failed is not None:
        return f"{failed.reason} {failed.log[:200]}".strip()
    if len(one.outputs) != len(other.outputs):
        return f"{len(one.outputs)} and {len(other.outputs)} outputs"
    pairs = zip(one.outputs, other.outputs, strict=True)
    return next((f"{str(a)[:60]}, then {str(b)[:60]}" for a, b in pairs if not equal(a, b) and repr(a) != repr(b)), "")


def unfit(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], keep_weak: bool, context: RunContext
) -> dict[str, str]:
    """By task id, why training leaves out the task. Verifies only reference answers and stub programs of tasks with
    test suites."""
    golds = [one for task in tasks if (one := _tested(domain, task)) is not None]
    if not golds:
        return {}
    judged = _judged(verifier, golds, context)
    found = {task.id: why(verdict) for task, verdict in judged if verdict.outcome != "passed"}
    if not keep_weak:
        stubs = _judged(verifier, [stub for one in golds if one[0].id not in found for stub in _stubs(*one)], context)
        found |= {task.id: WEAK for task, verdict in stubs if verdict.outcome == "passed"}
    return found


def _tested(domain: Domain, task: Task) -> tuple[Task, Candidate] | None:
    """The task in the form that a program answers, and its reference program. None if the task has no tests to
    screen."""
    if isinstance(task.problem, PytestProblem) and task.gold is not None:
        return task, domain.parse(task.gold, task)
    return None if getattr(task.problem, "proved", False) else as_program(task)


def _judged(
    verifier: Verifier, trials: Sequence[tuple[Task, Candidate]], context: RunContext
) -> Iterator[tuple[Task, Verdict]]:
    """The verdicts on reference answers, or on stubs. They are separate passes, because a suite that refuses its
    reference answer may give no verdict on other programs, and too many of these would stop the run."""
    context.progress(kind="phase", name="check tests", done=0, total=len(trials))
    requests = (Request(task.problem, candidate) for task, candidate in trials)
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        yield trials[index][0], verdict
        if done % EVERY == 0 or done == len(trials):
            context.progress(kind="phase", name="check tests", done=done, total=len(trials))


def _stubs(task: Task, gold: Candidate) -> Iterator[tuple[Task, Candidate]]:
    for one in stub_programs(gold.text) if gold.text is not None else ():
        yield task, Candidate(one.code)
