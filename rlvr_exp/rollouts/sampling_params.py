"""How completions are sampled, and what a sampled completion is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlvr_exp.config.sampling import Drawing
from rlvr_exp.core.seeds import Key
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.drafts import MOST
from rlvr_exp.rollouts.draw import LogitFilters
from rlvr_exp.rollouts.stopping import CompletionCheck, Decode
from rlvr_exp.tasks.base import Domain

SampleKey = Sequence[Key] | None
"""The random key of a completion, e.g. (run seed, "rollout", step, index, task id, sample); None: greedy."""


class Watch(Protocol):
    """Is told how the completions of a batch come along. Both calls are optional for an engine."""

    def drew(self, tokens: int) -> None:
        """So many tokens were sampled, in the thread that iterates over the completions."""

    def ended(self, one: Any) -> None:
        """A completion (rlvr_exp.rollouts.engines.base.Drawn) has ended and may wait to be fetched; in any thread."""


@dataclass(frozen=True)
class SamplingParams:
    """How completions are sampled and when they end."""

    filters: LogitFilters
    max_new_tokens: int
    eos_ids: tuple[int, ...]
    stop: tuple[str, ...] = ()
    """Texts that end a completion; they stay part of it."""
    decode: Decode | None = None
    """Token ids to text; needed for `stop`."""
    batch_size: int = 512
    """The most completions sampled at once; the completions of a prompt stay together."""
    completion_check: CompletionCheck | None = None
    """Ends a completion that the domain calls complete; it needs `decode`."""
    drafts: int = MOST
    """The most tokens of a completion that are guessed for one pass (rlvr_exp.rollouts.drafts); what is sampled is the same."""
    watch: Watch | None = None

    def completes(self, ids: Sequence[int]) -> bool:
        """Whether the domain calls the completion complete."""
        assert self.completion_check is not None and self.decode is not None
        return self.completion_check.finished(self.decode(ids))

    @classmethod
    def of(
        cls, options: Drawing, policy: Policy, max_new_tokens: int, batch_size: int, domain: Domain | None = None
    ) -> "SamplingParams":
        """From the `algorithm` or the `evaluation` node (rlvr_exp.config.sampling.Drawing), for completions in a domain."""
        filters = LogitFilters(options.temperature, options.top_k, options.top_p, options.min_p)
        ends = (policy.eos_ids, tuple(options.stop), policy.decode)
        return cls(filters, max_new_tokens, *ends, batch_size, CompletionCheck.of(domain, policy))


@dataclass(frozen=True)
class FinishedSample:
    """A completion that has ended: sample `sample` of prompt `prompt`."""

    prompt: int
    sample: int
    sampled: TokenSample
