"""From sampled tokens to judged answers: text, candidate, verdict."""

from dataclasses import dataclass

from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.sampler import TokenSample
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.verifiers.base import Verdict

TRUNCATED = Verdict("failed", bucket="truncated", log="the completion reached its token limit before it ended")
"""Of a completion that was not let to its end: it is not judged."""


@dataclass(frozen=True)
class ParsedCompletion:
    """One completion of a task as text, and the candidate in it."""

    task: Task
    sample: int
    sampled: TokenSample
    text: str
    candidate: Candidate


@dataclass(frozen=True)
class Completion(ParsedCompletion):
    """One completion of a task, judged."""

    verdict: Verdict
    seconds: float = 0.0
    """Wall seconds from the question to the verdict, the others of its batch included."""
    drawn: float = 0.0
    """Wall seconds from the question to its last token."""


def parse_completion(policy: Policy, domain: Domain, task: Task, sample: int, sampled: TokenSample) -> ParsedCompletion:
    text = policy.decode(sampled.ids)
    return ParsedCompletion(task, sample, sampled, text, domain.parse(text, task))
