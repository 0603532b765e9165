"""The sampling loop for a local engine: several completions for each prompt, the prompt computed once.

A group of G completions is decoded as one row. The row's cache holds the prompt once and then G new columns a step,
and a mask lets a completion see the prompt and itself alone: any causal model that takes a 4-D attention mask can do
it, and the cache is a fraction of what G separate rows would need.

Every draw takes its number from the caller's key and the token's position by inverting the cumulative distribution;
no global generator is read or moved (DESIGN.md, "Determinism").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from rlvr_exp.core.seeds import Key, derive


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. `temperature` 0 means greedy."""

    temperature: float
    max_new_tokens: int
    eos_ids: tuple[int, ...]
    pad_id: int


@dataclass(frozen=True)
class Sampled:
    """One completion as tokens, the end-of-sequence token included when it was drawn."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each drawn token under the distribution it was drawn from (after temperature)."""
    truncated: bool
    """True when the token limit ended it."""


def sample_groups(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[Sequence[Sequence[Key]]],
    sampling: Sampling,
) -> list[list[Sampled]]:
    """Draw `len(keys[p])` completions for each prompt p; all prompts must ask for the same number.

    Args:
        prompts: token ids of each prompt, unpadded, at least one token long.
        keys: for each prompt and sample the key of its draws, e.g. (run seed, "rollout", step, task id, sample).

    Returns:
        For each prompt its completions in the order of its keys.
    """
    group = len(keys[0])
    if any(len(row) != group for row in keys):
        raise ValueError(f"sample_groups: every prompt needs the same number of samples, got {[len(k) for k in keys]}")
    uniforms = torch.from_numpy(_uniforms(keys, sampling.max_new_tokens)).to(model.device)
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            return _decode(model, prompts, uniforms, sampling)
    finally:
        model.train(was_training)


def _uniforms(keys: Sequence[Sequence[Sequence[Key]]], length: int) -> np.ndarray:
    """Shape (prompts, group, length): the number of a draw depends on its key and its position alone."""
    rows = [[np.random.Generator(np.random.Philox(derive(*key))).random(length) for key in row] for row in keys]
    return np.asarray(rows, dtype=np.float64)


def _decode(model: PreTrainedModel, prompts, uniforms: torch.Tensor, sampling: Sampling) -> list[list[Sampled]]:
    batch = _Batch(model, prompts, uniforms.shape[1], sampling)
    logits = batch.prefill()
    for step in range(sampling.max_new_tokens):
        drawn, logprobs = _draw(logits, uniforms[batch.active, :, step], sampling.temperature)
        batch.record(step, drawn, logprobs)
        if step + 1 == sampling.max_new_tokens or not batch.drop_ended():
            break
        logits = batch.forward(step)
    return batch.completions()


class _Batch:
    """Groups being decoded: what was drawn, and the cache and mask of those that still draw."""

    def __init__(self, model: PreTrainedModel, prompts, group: int, sampling: Sampling):
        self.model, self.group, self.pad_id = model, group, sampling.pad_id
        device = model.device
        self.ids, self.seen = _left_padded(prompts, sampling.pad_id, device)
        self.lengths = self.seen.sum(1)
        rows = len(prompts)
        shape = (rows, group, sampling.max_new_tokens)
        self.tokens = torch.full(shape, sampling.pad_id, device=device)
        self.logprobs = torch.zeros(shape, device=device)
        self.counts = torch.zeros((rows, group), dtype=torch.long, device=device)
        self.alive = torch.ones((rows, group), dtype=torch.bool, device=device)
        self.active = torch.arange(rows, device=device)
        """Rows that still draw, in the order of the cache."""
        self.eos = torch.tensor(sampling.eos_ids, device=device)
        self.cache = DynamicCache(config=model.config)
        hidden = torch.finfo(model.dtype).min
        others = ~torch.eye(group, dtype=torch.bool, device=device)
        self.mask = torch.zeros((rows, 1, group, self.ids.shape[1]), dtype=model.dtype, device=device)
        self.mask.masked_fill_(~self.seen.bool()[:, None, None, :], hidden)
        self.own = torch.zeros((group, group), dtype=model.dtype, device=device).masked_fill_(others, hidden)
        """What the columns of one step add to the mask: a completion sees its own token alone."""

    def prefill(self) -> torch.Tensor:
        """(rows, group, vocabulary) logits of the first token; each prompt is computed once."""
        positions = (self.seen.cumsum(1) - 1).clamp(min=0)
        output = self.model(
            input_ids=self.ids,
            attention_mask=self.seen,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1:, :].expand(-1, self.group, -1)

    def record(self, step: int, drawn: torch.Tensor, logprobs: torch.Tensor) -> None:
        drawn = torch.where(self.alive[self.active], drawn, self.pad_id)
        self.tokens[self.active, :, step] = drawn
        self.logprobs[self.active, :, step] = logprobs
        self.counts[self.active] += self.alive[self.active]
        self.alive[self.active] &= ~torch.isin(drawn, self.eos)

    def drop_ended(self) -> bool:
        """Groups whose completions have all ended leave the batch and the cache; False when none is left."""
        keep = self.alive[self.active].any(1)
        if keep.any() and not keep.all():
            kept = keep.nonzero().flatten()
            self.cache.batch_select_indices(kept)
            self.active, self.mask = self.active[kept], self.mask[kept]
        return bool(keep.any())

    def forward(self, step: int) -> torch.Tensor:
        """(rows, group, vocabulary) logits after the tokens of `step`."""
        rows = len(self.active)
        self.mask = torch.cat([self.mask, self.own.expand(rows, 1, -1, -1)], dim=-1)
        return self.model(
            input_ids=self.tokens[self.active, :, step],
            attention_mask=self.mask,
            position_ids=(self.lengths[self.active, None] + step).expand(-1, self.group),
            past_key_values=self.cache,
            use_cache=True,
        ).logits

    def completions(self) -> list[list[Sampled]]:
        tokens, logprobs = self.tokens.tolist(), self.logprobs.tolist()
        counts, alive = self.counts.tolist(), self.alive.tolist()
        return [
            [Sampled(tuple(tokens[p][s][:n]), tuple(logprobs[p][s][:n]), truncated=alive[p][s]) for s, n in enumerate(row)]
            for p, row in enumerate(counts)
        ]


def _draw(logits: torch.Tensor, uniforms: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Invert the cumulative distribution at the given numbers; shapes (rows, group, vocabulary) and (rows, group)."""
    logits = logits.float()
    if temperature == 0:
        drawn = logits.argmax(-1)
        return drawn, torch.zeros_like(uniforms, dtype=logits.dtype)
    scores = torch.log_softmax(logits / temperature, dim=-1)
    cumulative = scores.double().exp().cumsum(-1)
    targets = uniforms.unsqueeze(-1) * cumulative[..., -1:]
    drawn = torch.searchsorted(cumulative, targets, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)
    return drawn, scores.gather(-1, drawn.unsqueeze(-1)).squeeze(-1)


def _left_padded(prompts: Sequence[Sequence[int]], pad_id: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(prompt) for prompt in prompts)
    ids = torch.full((len(prompts), width), pad_id, device=device)
    seen = torch.zeros((len(prompts), width), dtype=torch.long, device=device)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt, device=device)
        seen[row, width - len(prompt) :] = 1
    return ids, seen
