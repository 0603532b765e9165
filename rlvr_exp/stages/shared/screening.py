"""Finds training tasks whose tests cannot judge: pytest suites that refuse their own gold or accept a stub program.

A suite that inspects what only a single process can have (the clock, the callers' frames) is no candidate's fault, so
its task teaches nothing; a suite that a program without bodies passes teaches the wrong thing. Both are left out and
counted.
"""

from collections.abc import Iterator, Sequence

from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.shared.gold_check import why
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.rows import as_program
from rlvr_exp.tasks.mutants import stub_programs
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

WEAK = "a hollow program passes"
EVERY = 50


def unfit(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], keep_weak: bool, context: RunContext
) -> dict[str, str]:
    """Task id -> why it is left out. Verifies golds and stub programs of tasks with test suites only."""
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
    """The task, as one that a program answers, and its right program; None where no tests are to be screened."""
    if isinstance(task.problem, PytestProblem) and task.gold is not None:
        return task, domain.parse(task.gold, task)
    return None if getattr(task.problem, "proved", False) else as_program(task)


def _judged(
    verifier: Verifier, trials: Sequence[tuple[Task, Candidate]], context: RunContext
) -> Iterator[tuple[Task, Verdict]]:
    """The verdicts, golds in a pass of their own: a suite that its gold does not pass may have none on other programs, and too many
    of these would stop the run."""
    context.progress(kind="phase", name="check tests", done=0, total=len(trials))
    requests = (Request(task.problem, candidate) for task, candidate in trials)
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        yield trials[index][0], verdict
        if done % EVERY == 0 or done == len(trials):
            context.progress(kind="phase", name="check tests", done=done, total=len(trials))


def _stubs(task: Task, gold: Candidate) -> Iterator[tuple[Task, Candidate]]:
    for one in stub_programs(gold.text) if gold.text is not None else ():
        yield task, Candidate(one.code)
