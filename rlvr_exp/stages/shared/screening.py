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
from rlvr_exp.tasks.mutants import stub_programs
from rlvr_exp.verifiers.base import Request, Verifier

WEAK = "a hollow program passes"
EVERY = 50


def unfit(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], keep_weak: bool, context: RunContext
) -> dict[str, str]:
    """Task id -> why it is left out. Verifies golds and stub programs of tasks with test suites only."""
    tested = [task for task in tasks if isinstance(task.problem, PytestProblem) and task.gold is not None]
    if not tested:
        return {}
    trials = [trial for task in tested for trial in _trials(domain, task, keep_weak)]
    context.progress(kind="phase", name="check tests", done=0, total=len(trials))
    found: dict[str, str] = {}
    requests = (Request(task.problem, candidate) for task, _, candidate in trials)
    for done, (index, verdict) in enumerate(verifier.as_ready(requests), 1):
        task, is_gold, _ = trials[index]
        if is_gold and verdict.outcome != "passed":
            found[task.id] = why(verdict)
        elif not is_gold and verdict.outcome == "passed":
            found.setdefault(task.id, WEAK)
        if done % EVERY == 0 or done == len(trials):
            context.progress(kind="phase", name="check tests", done=done, total=len(trials))
    return found


def _trials(domain: Domain, task: Task, keep_weak: bool) -> Iterator[tuple[Task, bool, Candidate]]:
    gold = domain.parse(task.gold or "", task)
    yield task, True, gold
    if not keep_weak and gold.text is not None:
        for one in stub_programs(gold.text):
            yield task, False, Candidate(one.code)
