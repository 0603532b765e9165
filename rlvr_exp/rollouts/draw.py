"""From logits and one random number per row to a token, its log-probability and the tokens that it was drawn from.

Filters act in Transformers' order: temperature, top-k, top-p, min-p, each on the tokens that the filter before it kept,
renormalised. (vLLM applies min-p before top-k and top-p; with min-p and top-p both set its sets may be smaller.) The
log-probability is that of the distribution after all filters. A draw inverts the cumulative distribution in the order of
the vocabulary: no generator is read, and a row's token depends on that row alone.
"""

import math
from dataclasses import dataclass

import torch

from rlvr_exp.core.errors import GuardStop


@dataclass(frozen=True)
class LogitFilters:
    """Which part of a distribution to draw from; the options are documented in rlvr_exp.config.sampling."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def narrow(self) -> bool:
        """Whether some tokens are excluded."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0


@dataclass(frozen=True)
class TokenDraw:
    """Drawn tokens."""

    ids: torch.Tensor
    """(tokens,)"""
    logprobs: torch.Tensor
    """(tokens,) float32"""
    kept: torch.Tensor | None
    """(tokens, vocabulary) what could be drawn; None: all."""
    entropies: torch.Tensor
    """(tokens,) float32, of the distributions, in nats"""

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
    """Draw one token for each random number.

    Args:
        logits: (rows, vocabulary)
        uniforms: (tokens,) float64 in [0, 1); NaN selects the likeliest token, whose log-probability counts as 0.
        rows: (tokens,) the row of logits that each token is drawn from.

    Raises:
        GuardStop: a row has no distribution because its logits are not finite.
    """
    scores = logits.float()
    if filters.temperature != 1.0:
        scores = scores / filters.temperature
    kept = filter_mask(scores, filters) if filters.narrow else None
    if kept is not None:
        scores = scores.masked_fill(~kept, -torch.inf)
    highest, likeliest = scores.max(-1)
    scores = scores - highest[:, None]
    chances = scores.exp()
    cumulative = chances.cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1]
    if not bool(total.isfinite().all()):
        raise GuardStop(
            "the policy's logits are no numbers: its weights, or its activations on a prompt, exceed the range of their "
            "type. Lower optimizer.lr and resume from the last checkpoint, or load finite weights"
        )
    # With p = c / Z the entropy is log Z - sum of c log c / Z; a token without a chance adds nothing.
    mean = (chances * (scores if kept is None else scores.masked_fill(~kept, 0.0))).sum(-1)
    entropies = total.log().float() - mean / total.float()
    total, greedy = total[rows], uniforms.isnan()
    # Below the total even after rounding: tokens beyond it have no probability.
    targets = torch.minimum(uniforms.nan_to_num(0.0) * total, total.nextafter(torch.zeros_like(total)))
    ids = torch.searchsorted(cumulative.index_select(0, rows), targets[:, None], right=True)[:, 0]
    ids = torch.where(greedy, likeliest[rows], ids)
    logprobs = scores[rows, ids] - total.log().float()
    return TokenDraw(ids, logprobs.masked_fill(greedy, 0.0), None if kept is None else kept[rows], entropies[rows])


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
