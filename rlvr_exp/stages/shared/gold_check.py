"""Checks gold answers before training: a task whose own solution fails its verifier teaches nothing, or the wrong
thing. So does a reference of tests that does something else each time it runs."""

from collections.abc import Sequence
from itertools import islice

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.shared.unsteady import UNSTEADY, unsteady
from rlvr_exp.tasks.base import Candidate, Domain, Task, WritesTests
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

SHOWN = 5
"""Number of failures shown in full."""


def check_references(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], count: int, context: RunContext
) -> None:
    """Verify the references of the first `count` held-out tasks for which tests are written: these are measured by them.

    Raises:
        GuardStop: as `check_golds`.
    """
    if isinstance(domain, WritesTests):
        check_golds(domain, verifier, tasks, count, context, "held-out")


def check_golds(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], count: int, context: RunContext, of: str = "training"
) -> None:
    """Verify the golds of the first `count` tasks that have one. `of`: what tasks they are, in a word.

    Raises:
        GuardStop: a gold does not pass, or is `unsteady`; names task, place in the data, verdict and log.
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
    """By task id the verdict on a gold that does not pass, or that is `unsteady`."""
    verdicts = verifier.verify([Request(task.problem, candidate) for task, candidate in golds])
    judged = list(zip(golds, verdicts, strict=True))
    failed = {task.id: verdict for (task, _), verdict in judged if verdict.outcome != "passed"}
    return failed | unsteady(domain, verifier, [one for one, verdict in judged if verdict.outcome == "passed"])


def told(domain: Domain, task: Task, verdict: Verdict) -> str:
    """Why a gold does not pass, after where the data have what is at fault, as far as the domain knows."""
    refused = verdict.bucket == "wrong_answer" or verdict.outcome == "no_verdict"
    place = domain.gold_place(task, refused and not verdict.log.startswith(UNSTEADY))
    return f"{place}: {why(verdict)}" if place else why(verdict)


def why(verdict: Verdict) -> str:
    """A verdict other than `passed`, in one line."""
    reason = verdict.bucket or verdict.rule
    first = next((line.strip() for line in verdict.log.splitlines() if line.strip()), "")
    return f"{verdict.outcome}{f' ({reason})' if reason else ''}{f': {first[:200]}' if first else ''}"
