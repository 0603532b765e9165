"""A sampled completion with its verdict: the common record of rewards, groups, files, evaluation and inference.

`to_plain` and `from_plain` convert a completion to plain values and back, for checkpoints, the files of a run and
answers. A file keeps only the keys that it needs. A key that a row lacks is unknown in the completion read from it. CPU
seconds, cache hits of the verifier and the content of the task are never kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

VERDICT = ("outcome", "bucket", "rule", "passed", "total", "log", "assertions", "own_assertions", "measures")
"""Fields of a verdict, which are keys of a row."""

STATE = ("sample", "completion", "sampled", "candidate", "version", *VERDICT)
"""Keys that restore a completion of a known task, except for times."""

UNPARSED = Candidate(None, "a file's row holds no candidate: parse the text")

VERDICT_OF = "verdict_of"
"""A field of a turn in the rollout file (`about`): the origin of its verdict, if that is another turn."""

PENDING = Verdict("no_verdict", log="not yet verified")

TRUNCATED = Verdict("failed", bucket="truncated", log="the completion reached its token limit before it ended")
"""The verdict of a completion that reached its token limit. Such completions are not verified."""


@dataclass(frozen=True)
class TokenSample:
    """A completion as tokens. It includes the end-of-sequence token if that was drawn."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each token under the distribution that it was drawn from: after temperature and filters."""
    truncated: bool
    """Whether the token limit ended the completion."""
    kept_token_ids: tuple[tuple[int, ...], ...] | None = None
    """For each token the ids that the filters kept; None: the entire vocabulary."""
    entropy: float | None = field(default=None, compare=False)
    """Mean over the tokens of the entropy, in nats, of the distribution that each was drawn from, exact over the vocabulary;
    None: not known. It never decides anything, so that samples of other layouts are equal."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class TokenCount:
    """Tokens with unknown ids: those of a file's row, of several completions together, or of an endpoint."""

    count: int
    truncated: bool
    logprobs: tuple[float, ...] | None = None
    """Log-probability of each token, if an endpoint reports it. None: not known."""

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
    version: int | None = None
    """Updates of the weights that sampled it. None: the engine does not say."""

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return len(self.sampled)

    @property
    def truncated(self) -> bool:
        """Whether the token limit ended the completion."""
        return self.sampled.truncated

    @property
    def correct(self) -> bool:
        return self.verdict.outcome == "passed"


def unsampled(task: Task, sample: int, verdict: Verdict) -> Completion:
    """A completion that was never drawn, for example because its prompt is too long."""
    return Completion(task, sample, TokenCount(0, False), "", Candidate(None, verdict.log), verdict)


def rank(completion: Completion) -> tuple[int, float]:
    """Sort key of completions: one that passed ranks above the others, which rank by score. One without a verdict ranks
    last."""
    return {"passed": 2, "no_verdict": 0}.get(completion.verdict.outcome, 1), completion.verdict.score


@dataclass(frozen=True)
class RewardBreakdown:
    """The reward of a completion, or the credit of a turn. All fields are None or empty if there is no verdict, or if a
    term is not finite."""

    total: float | None
    """The value for the algorithm: the reward after the normaliser, or a credit."""
    sum: float | None = None
    """The reward before the normaliser. None for a turn that only has a credit."""
    terms: dict[str, float] = field(default_factory=dict)
    """The weighted share of each active term in `sum`."""


def to_plain(completion: Completion) -> dict[str, Any]:
    """All known fields as values for JSON. `completion` is the text."""
    sampled, verdict = completion.sampled, completion.verdict
    return {
        "task": completion.task.id,
        "family": completion.task.family,
        "sample": completion.sample,
        "completion": completion.text,
        "sampled": vars(sampled) if isinstance(sampled, TokenSample) else None,
        "tokens": completion.tokens,
        "truncated": completion.truncated,
        "candidate": vars(completion.candidate),
        "version": completion.version,
        **{name: getattr(verdict, name) for name in VERDICT},
        "score": verdict.score,
        "seconds": completion.seconds,
    }


def from_plain(row: Mapping[str, Any], task: Task | None = None) -> Completion:
    """The completion of a row. The row has at least task, family, sample, completion, tokens, outcome, bucket and log,
    or the keys of STATE.

    Args:
        task: the completion's task. None: only its id and family are known.

    Raises:
        ValueError, TypeError: the row has no valid verdict.
    """
    known = {name: row[name] for name in VERDICT if name in row}
    if row["outcome"] == "rejected":
        known["rule"] = row.get("rule") or ""  # An evaluation's file does not say which.
    return Completion(
        task=task or Task(row["task"], row["family"], math.nan, inputs=None, problem=None),
        sample=row["sample"],
        sampled=_sampled(row),
        text=row["completion"],
        candidate=Candidate(**row["candidate"]) if "candidate" in row else UNPARSED,
        verdict=Verdict(**known),
        seconds=row.get("seconds", 0.0),
        version=row.get("version"),
    )


def _sampled(row: Mapping[str, Any]) -> TokenSample | TokenCount:
    if row.get("sampled"):
        return TokenSample(**{name: _tuples(value) for name, value in row["sampled"].items()})
    return TokenCount(row["tokens"], row.get("truncated", row["bucket"] == "truncated"))


def _tuples(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list | tuple) else value
