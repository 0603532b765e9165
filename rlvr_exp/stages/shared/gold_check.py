"""Checks gold answers before training: a task whose own solution fails its verifier teaches nothing, or the wrong
thing."""

from collections.abc import Sequence
from itertools import islice

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

SHOWN = 5
"""Number of failures shown in full."""


def check_golds(domain: Domain, verifier: Verifier, tasks: Sequence[Task], count: int, context: RunContext) -> None:
    """Verify the golds of the first `count` tasks that have one.

    Raises:
        GuardStop: a gold does not pass; names task, verdict and log.
    """
    pairs = ((task, domain.gold_completion(task)) for task in tasks)
    golds = list(islice(((task, gold) for task, gold in pairs if gold is not None), count))
    if not golds:
        return
    context.progress(kind="phase", name="check golds", done=0, total=len(golds))
    verdicts = verifier.verify([Request(task.problem, domain.parse(gold, task)) for task, gold in golds])
    refused = [
        (task, verdict) for (task, _), verdict in zip(golds, verdicts, strict=True) if verdict.outcome != "passed"
    ]
    passed = 1 - len(refused) / len(golds)
    context.progress(kind="phase", name="check golds", done=len(golds), total=len(golds), success=passed)
    if refused:
        shown = "\n".join(f"{task.id}: {why(verdict)}" for task, verdict in refused[:SHOWN])
        raise GuardStop(
            f"{len(refused)} of {len(golds)} gold answers of the training tasks do not pass:\n{shown}\n"
            "+stage=validate with the same data and verifier looks at all of them; mend the data or the verifier's "
            "options, or train all the same with verifier.validate=0"
        )


def why(verdict: Verdict) -> str:
    """A verdict other than `passed`, in one line."""
    reason = verdict.bucket or verdict.rule
    first = next((line.strip() for line in verdict.log.splitlines() if line.strip()), "")
    return f"{verdict.outcome}{f' ({reason})' if reason else ''}{f': {first[:200]}' if first else ''}"
