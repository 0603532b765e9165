"""A sampled completion with its verdict: the one record that rewards, groups, files, evaluation and inference hold.

Torch-free. Plain values and back: rlvr_exp.episodes.serialize. Nothing here samples, verifies or rewards.
"""

from dataclasses import dataclass, field

from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

VERDICT_OF = "verdict_of"
"""What a rollout file says of a turn (`about`): whose verdict it is shown with, where it is not its own."""
PENDING = Verdict("no_verdict", log="not yet verified")
TRUNCATED = Verdict("failed", bucket="truncated", log="the completion reached its token limit before it ended")
"""The verdict of a completion that reached its token limit: it is not verified."""


@dataclass(frozen=True)
class TokenSample:
    """A completion as tokens, including the end-of-sequence token when it was drawn."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each token under the distribution that it was drawn from: after temperature and filters."""
    truncated: bool
    """True when the token limit ended it."""
    kept_token_ids: tuple[tuple[int, ...], ...] | None = None
    """For each token the ids that the filters kept; None: the entire vocabulary."""
    entropy: float | None = field(default=None, compare=False)
    """Mean over the tokens of the entropy, in nats, of the distribution that each was drawn from, exact over the vocabulary;
    None: not known. It never decides anything, so that samples of other layouts are equal."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class TokenCount:
    """Tokens of which the ids are not known: those of a file's row, of several completions together, of an endpoint."""

    count: int
    truncated: bool
    logprobs: tuple[float, ...] | None = None
    """Of each token, where an endpoint reports them; None: not known."""

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True)
class Completion:
    """A completion of a task, the candidate parsed from it, and its verdict."""

    task: Task
    sample: int
    """Index among the completions of its prompt."""
    sampled: TokenSample | TokenCount
    text: str
    candidate: Candidate
    verdict: Verdict = PENDING
    seconds: float = field(default=0.0, compare=False)
    """Wall seconds from the request to the verdict, shared with the other completions of its batch."""
    drawn: float = field(default=0.0, compare=False)
    """Wall seconds from the request to its last token."""

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return len(self.sampled)

    @property
    def truncated(self) -> bool:
        """The token limit ended it."""
        return self.sampled.truncated

    @property
    def correct(self) -> bool:
        return self.verdict.outcome == "passed"


def unsampled(task: Task, sample: int, verdict: Verdict) -> Completion:
    """A completion that was never drawn, as where the prompt is too long."""
    return Completion(task, sample, TokenCount(0, False), "", Candidate(None, verdict.log), verdict)


@dataclass(frozen=True)
class RewardBreakdown:
    """The reward of a completion, or what an environment credits a turn with; everything None or empty where there is no
    verdict, or a term is not finite."""

    total: float | None
    """What the algorithm learns from: the reward after the normaliser, or a credit."""
    sum: float | None = None
    """The reward before the normaliser; None of a turn that is only credited."""
    terms: dict[str, float] = field(default_factory=dict)
    """Each switched-on term's weighted share of `sum`."""
