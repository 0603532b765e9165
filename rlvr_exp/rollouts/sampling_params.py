"""How completions are sampled and when they end.

Besides the end token, stop strings and a domain's check end a completion. Stop strings are searched in the decoded text, so that it does not matter how a text is cut into tokens.

A token's text depends on its neighbours (a character may be spread over several tokens, a leading space may vanish), so
a completion is decoded from a few tokens before the new token, and the added text is searched together with the end of
the text before it: the cost of a token does not grow with the completion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.core.seeds import Key
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.drafts import MOST
from rlvr_exp.rollouts.draw import LogitFilters
from rlvr_exp.tasks.base import Domain

Decode = Callable[[Sequence[int]], str]


class StopStringMatcher:
    """Searches a growing completion for stop strings.

    Args:
        stops: texts that end it.
        decode: token ids to text, as the completion will be decoded.
    """

    def __init__(self, stops: Sequence[str], decode: Decode):
        self._stops, self._decode = tuple(stops), decode
        self._reach = max(map(len, self._stops)) - 1
        self._ids: list[int] = []
        self._from = self._read = 0
        self._tail = ""

    def ends(self, token: int) -> bool:
        """Whether this token completes a stop string."""
        self._ids.append(token)
        before, now = self._decode(self._ids[self._from : self._read]), self._decode(self._ids[self._from :])
        if not now.startswith(before):  # The tokenizer rewrites earlier text: decode everything.
            return self._found(self._decode(self._ids))
        text = self._tail + now[len(before) :]
        if not now.endswith(INCOMPLETE):
            self._from, self._read = self._read, len(self._ids)
            self._tail = text[max(0, len(text) - self._reach) :]
        return self._found(text)

    def _found(self, text: str) -> bool:
        return any(stop in text for stop in self._stops)


@dataclass(frozen=True)
class CompletionCheck:
    """A domain's check that a completion is complete, called only after tokens that can complete it: once or twice in a
    completion, where stop strings are searched after each token."""

    finished: Callable[[str], bool]
    tokens: tuple[int, ...]
    """Those in whose text the domain's `ends` stands."""

    @classmethod
    def of(cls, domain: Domain | None, policy: Policy) -> "CompletionCheck | None":
        """None where the domain has no stop text, or an endpoint has the tokenizer."""
        if domain is None or not domain.stop_text or policy.tokenizer is None:
            return None
        vocabulary = policy.tokenizer.get_vocab()
        return cls(
            domain.is_complete, tuple(sorted(token for text, token in vocabulary.items() if domain.stop_text in text))
        )


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
        """From the `algorithm` or the `evaluation` node (rlvr_exp.config.algorithm.Drawing), for completions in a domain."""
        filters = LogitFilters(options.temperature, options.top_k, options.top_p, options.min_p)
        ends = (policy.eos_ids, tuple(options.stop), policy.decode)
        return cls(filters, max_new_tokens, *ends, batch_size, CompletionCheck.of(domain, policy))


@dataclass(frozen=True)
class FinishedSample:
    """A completion that has ended: sample `sample` of prompt `prompt`."""

    prompt: int
    sample: int
    sampled: TokenSample


INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""The text that a tokenizer decodes the first bytes of a character to."""
