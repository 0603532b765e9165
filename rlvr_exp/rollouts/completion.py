"""From sampled tokens to verified completions: text, candidate, verdict."""

from dataclasses import dataclass

from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.sampler import TokenSample
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.verifiers.base import Verdict

TRUNCATED = Verdict("failed", bucket="truncated", log="the completion reached its token limit before it ended")
"""The verdict of a completion that reached its token limit: it is not verified."""


@dataclass(frozen=True)
class ParsedCompletion:
    """A completion of a task as text, and the candidate parsed from it."""

    task: Task
    sample: int
    sampled: TokenSample
    text: str
    candidate: Candidate


@dataclass(frozen=True)
class Completion(ParsedCompletion):
    """A verified completion of a task."""

    verdict: Verdict
    seconds: float = 0.0
    """Wall seconds from the request to the verdict, shared with the other completions of its batch."""
    drawn: float = 0.0
    """Wall seconds from the request to its last token."""


def parse_completion(policy: Policy, domain: Domain, task: Task, sample: int, sampled: TokenSample) -> ParsedCompletion:
    text = policy.decode(sampled.ids)
    return ParsedCompletion(task, sample, sampled, text, domain.parse(text, task))
