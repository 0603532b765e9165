"""How completions are sampled and when they end: from logits and one random number per row to a token.

Filters act in Transformers' order: temperature, top-k, top-p, min-p, each on the tokens that the filter before it kept,
renormalised. (vLLM applies min-p before top-k and top-p; with min-p and top-p both set its sets may be smaller.) The
log-probability is that of the distribution after all filters. A draw inverts the cumulative distribution in the order of
the vocabulary: no generator is read, and a row's token depends on that row alone.

Besides the end token, stop strings and a domain's check end a completion. Stop strings are searched in the decoded text, so
that the cut into tokens does not matter. A token's text depends on its neighbours (a character may be spread over several
tokens, a leading space may vanish), so a completion is decoded from a few tokens before the new token, and the added text
is searched together with the end of the text before it. The cost of a token does not grow with the completion.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.functional import pad

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.seeds import Key
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.base import Domain

PART = 256
"""Columns of a part of a large vocabulary."""
SMALL = 1024
"""Tokens up to which a vocabulary is one part."""


@dataclass(frozen=True)
class LogitFilters:
    """The part of a distribution to draw from; the options are documented in rlvr_exp.config.algorithm."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @classmethod
    def of(cls, options: Drawing) -> "LogitFilters":
        return cls(options.temperature, options.top_k, options.top_p, options.min_p)

    @property
    def narrow(self) -> bool:
        """Whether some tokens are excluded."""
        return bool(self.excluding())

    def excluding(self) -> dict[str, float]:
        """The values that exclude tokens, by name."""
        neutral = LogitFilters()
        names = ("top_k", "top_p", "min_p")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(neutral, name)}


@dataclass(frozen=True)
class TokenDraw:
    """Drawn tokens."""

    ids: torch.Tensor
    """(tokens,)"""
    logprobs: torch.Tensor
    """(tokens,) float32"""
    kept: torch.Tensor | None
    """(tokens, vocabulary) whether a token could be drawn; None: all."""
    entropies: torch.Tensor
    """(tokens,) float32, of the distributions, in nats"""
    finite: torch.Tensor
    """() whether all logits make a distribution; otherwise no token counts"""

    def fetch(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ids, log-probabilities and entropies, in one transfer: the host waits for a device once per token.

        Raises:
            GuardStop: a row has no distribution because its logits are not finite.
        """
        parts = (self.ids, self.logprobs, self.entropies, self.finite.expand(len(self.ids)))
        ids, logprobs, entropies, finite = torch.stack([part.double() for part in parts]).cpu().numpy()
        if not finite.all():
            raise GuardStop(
                "the policy's logits are no numbers: its weights, or its activations on a prompt, exceed the range of their "
                "type. Lower optimizer.lr and resume from the last checkpoint, or load finite weights"
            )
        return ids.astype(np.int64), logprobs, entropies

    def kept_token_ids(self) -> list[tuple[int, ...]] | None:
        """The ids of `kept`, a tuple for each token."""
        if self.kept is None:
            return None
        counts = self.kept.sum(1).tolist()
        parts = self.kept.nonzero()[:, 1].split(counts)
        return [tuple(part.tolist()) for part in parts]


def draw(
    logits: torch.Tensor, uniforms: torch.Tensor, filters: LogitFilters, rows: torch.Tensor | None = None
) -> TokenDraw:
    """Draw one token for each random number, without waiting for the device unless filters exclude tokens.

    Args:
        logits: (rows, vocabulary)
        uniforms: (tokens,) float64 in [0, 1), on the host; NaN selects the likeliest token, whose log-probability counts as 0.
        rows: (tokens,) the row of logits that each token is drawn from.
    """
    scores = logits.float()
    if filters.temperature != 1.0:
        scores = scores / filters.temperature
    kept = filter_mask(scores, filters) if filters.narrow else None
    if kept is not None:
        scores = scores.masked_fill(~kept, -torch.inf)
    logs = scores.log_softmax(-1)
    chances = logs.exp()
    parts = _parts(chances)
    sums = parts.sum(-1)
    rows = torch.arange(len(logits)) if rows is None else rows
    rows, numbers = (each.to(logits.device, non_blocking=True) for each in (rows, uniforms))
    part, rest = _search(sums[rows], numbers.nan_to_num(0.0))
    ids = part * parts.shape[-1] + _search(parts[rows, part], rest)[0]
    greedy = numbers.isnan()
    if bool(uniforms.isnan().any()):
        ids = torch.where(greedy, scores.argmax(-1)[rows], ids)
    logprobs = logs[rows, ids].masked_fill_(greedy, 0.0)
    # A token without a chance adds nothing to the entropy.
    terms = chances.mul_(logs if kept is None else logs.masked_fill_(~kept, 0.0))
    entropies = _parts(terms).sum(-1).sum(-1).neg_()
    return TokenDraw(ids, logprobs, None if kept is None else kept[rows], entropies[rows], sums.isfinite().all())


def _parts(x: torch.Tensor) -> torch.Tensor:
    """(rows, parts, columns) of (rows, vocabulary), zeros behind its end: sums part by part are several times as fast as one
    running sum over a large vocabulary, and their bits do not depend on the number of threads."""
    size = x.shape[-1]
    part = size if size <= SMALL else PART
    return pad(x, (0, -size % part)).unflatten(-1, (-1, part)) if size % part else x.unflatten(-1, (-1, part))


def _search(weights: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows,) the first column up to which weights (rows, columns) add up to more than the row's target, and the rest of the
    target before that column. Columns without weight are never found."""
    cumulative = weights.cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1]
    # Below the total even after rounding.
    targets = torch.minimum(targets, total.nextafter(total.new_zeros(())))
    # The last column at most, even if the weights are no numbers.
    found = torch.searchsorted(cumulative, targets[:, None], right=True).clamp_(max=weights.shape[-1] - 1)
    before = (cumulative - weights).gather(-1, found)
    return found[:, 0], (targets - before[:, 0]).clamp_(min=0.0)


def filter_mask(scores: torch.Tensor, filters: LogitFilters) -> torch.Tensor:
    """(rows, vocabulary) which tokens may be drawn, from scores after temperature. The likeliest is always kept."""
    kept = torch.ones_like(scores, dtype=torch.bool)
    if filters.top_k:
        least = scores.topk(min(filters.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
        kept = scores >= least
    if filters.top_p < 1.0:
        ordered, places = scores.masked_fill(~kept, -torch.inf).sort(dim=-1, descending=True, stable=True)
        shares = ordered.softmax(-1)
        likelier = shares.cumsum(-1) - shares
        likelier[:, 0] = 0.0
        kept = kept & torch.zeros_like(kept).scatter(-1, places, likelier < filters.top_p)
    if filters.min_p > 0.0:
        kept = kept & (scores >= scores.amax(-1, keepdim=True) + math.log(filters.min_p))
    return kept


@dataclass(frozen=True)
class Logits:
    """Of the next token behind each of some tokens of completions, one completion after the other."""

    values: torch.Tensor
    """(rows, vocabulary)"""
    rows: np.ndarray
    """(tokens,) the row of each token"""

    def of_tokens(self) -> torch.Tensor:
        """(tokens, vocabulary)"""
        return self.values.index_select(0, torch.from_numpy(self.rows).to(self.values.device))


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
    completion, whereas stop strings are searched after each token."""

    finished: Callable[[str], bool]
    tokens: tuple[int, ...]
    """Those in whose text the domain's `ends` stands."""

    @classmethod
    def of(cls, domain: Domain | None, policy: Policy) -> "CompletionCheck | None":
        """None if the domain has no stop text, or an endpoint has the tokenizer."""
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
    watch: Watch | None = None
    planned_prompt: int = 0
    """Tokens of each prompt in an accelerator's memory plan. Shorter prompts leave room for more completions than `batch_size`.
    0: they do not."""

    def completes(self, ids: Sequence[int]) -> bool:
        """Whether the domain calls the completion complete."""
        assert self.completion_check is not None and self.decode is not None
        return self.completion_check.finished(self.decode(ids))

    @classmethod
    def of(
        cls, options: Drawing, policy: Policy, max_new_tokens: int, batch_size: int, domain: Domain | None = None
    ) -> "SamplingParams":
        """From the `algorithm` or the `evaluation` node (rlvr_exp.config.algorithm.Drawing), for completions in a domain."""
        ends = (policy.eos_ids, tuple(options.stop), policy.decode)
        return cls(LogitFilters.of(options), max_new_tokens, *ends, batch_size, CompletionCheck.of(domain, policy))


@dataclass(frozen=True)
class FinishedSample:
    """A completion that has ended: sample `sample` of prompt `prompt`."""

    prompt: int
    sample: int
    sampled: TokenSample


INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""The text that a tokenizer decodes the first bytes of a character to."""
