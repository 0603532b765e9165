"""What a reward is computed from, and what a term of a reward promises. Terms read verdicts; they never judge."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class RewardInput:
    """One sampled answer with its verdict."""

    task: Task
    completion: str
    tokens: int
    """Length of the completion in tokens."""
    truncated: bool
    """The completion was cut at its token limit."""
    candidate: Candidate
    verdict: Verdict

    @property
    def correct(self) -> bool:
        return self.verdict.outcome == "passed"


@dataclass(frozen=True)
class ValueRange:
    """The values a term can take. `open_top`: it comes as near to `high` as you like and never reaches it."""

    low: float
    high: float
    open_top: bool = False


class Term(ABC):
    """One named part of a reward, paid `weight` times. A weight of 0 switches it off: it is not computed."""

    weight: float
    when_correct: ValueRange
    """What a correct answer can get, unweighted."""
    when_wrong: ValueRange
    """What a failed or rejected answer can get, unweighted."""

    @abstractmethod
    def __call__(self, verified: RewardInput) -> float:
        """The unweighted value, inside the span that fits the verdict. Never called without a verdict."""
