"""From sampled tokens to judged answers: text, candidate, verdict. One home for training, evaluation and inference."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.sampler import Sampled
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier


@dataclass(frozen=True)
class Answer:
    """One completion of a task, judged."""

    task: Task
    sample: int
    sampled: Sampled
    text: str
    candidate: Candidate
    verdict: Verdict


def judge(
    policy: Policy, domain: Domain, verifier: Verifier, tasks: Sequence[Task], groups: Sequence[Sequence[Sampled]]
) -> list[list[Answer]]:
    """Judge every completion of every task; a completion cut off by the token limit fails as `truncated`."""
    read = [[(text := policy.decode(one.ids), domain.parse(text)) for one in group] for group in groups]
    whole = [(t, s) for t, group in enumerate(groups) for s, one in enumerate(group) if not one.truncated]
    verdicts = verifier.verify([Request(tasks[t].problem, read[t][s][1]) for t, s in whole])
    by_place = dict(zip(whole, verdicts, strict=True))
    cut = Verdict("failed", bucket="truncated", log="the completion reached its token limit before it ended")
    return [
        [
            Answer(task, s, one, *read[t][s], by_place.get((t, s), cut))
            for s, one in enumerate(groups[t])
        ]
        for t, task in enumerate(tasks)
    ]
