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


@dataclass
class _Row:
    """Where one completion stands in the output buffers."""

    prompt: int
    sample: int


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
    rows, group = uniforms.shape[:2]
    device, dtype = model.device, model.dtype
    ids, seen = _left_padded(prompts, sampling.pad_id, device)
    lengths = seen.sum(1)
    positions = (seen.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    prefill = model(
        input_ids=ids, attention_mask=seen, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1
    )
    logits = prefill.logits[:, -1:, :].expand(rows, group, -1)

    tokens = torch.full((rows, group, sampling.max_new_tokens), sampling.pad_id, device=device)
    logprobs = torch.zeros((rows, group, sampling.max_new_tokens), device=device)
    alive = torch.ones((rows, group), dtype=torch.bool, device=device)
    counts = torch.zeros((rows, group), dtype=torch.long, device=device)
    active = torch.arange(rows, device=device)
    eos = torch.tensor(sampling.eos_ids, device=device)
    own = torch.eye(group, dtype=torch.bool, device=device)
    hidden = torch.finfo(dtype).min
    mask = torch.zeros((rows, 1, group, ids.shape[1]), dtype=dtype, device=device)
    mask.masked_fill_(~seen.bool()[:, None, None, :], hidden)
    own_mask = torch.zeros((group, group), dtype=dtype, device=device).masked_fill_(~own, hidden)

    for step in range(sampling.max_new_tokens):
        drawn, scores = _draw(logits, uniforms[active, :, step], sampling.temperature)
        drawn = torch.where(alive[active], drawn, sampling.pad_id)
        tokens[active, :, step] = drawn
        logprobs[active, :, step] = scores
        counts[active] += alive[active]
        alive[active] &= ~torch.isin(drawn, eos)
        keep = alive[active].any(1)
        if step + 1 == sampling.max_new_tokens or not keep.any():
            break
        if not keep.all():  # a group whose completions have all ended leaves the batch and its cache
            kept = keep.nonzero().flatten()
            cache.batch_select_indices(kept)
            active, drawn, mask = active[kept], drawn[kept], mask[kept]
        mask = torch.cat([mask, own_mask.expand(len(active), 1, group, group)], dim=-1)
        logits = model(
            input_ids=drawn,
            attention_mask=mask,
            position_ids=(lengths[active, None] + step).expand(-1, group),
            past_key_values=cache,
            use_cache=True,
        ).logits
    return _collect(tokens, logprobs, counts, alive)


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


def _collect(tokens, logprobs, counts, alive) -> list[list[Sampled]]:
    tokens, logprobs, counts, alive = tokens.tolist(), logprobs.tolist(), counts.tolist(), alive.tolist()
    return [
        [
            Sampled(tuple(tokens[p][s][:n]), tuple(logprobs[p][s][:n]), truncated=alive[p][s])
            for s, n in enumerate(row)
        ]
        for p, row in enumerate(counts)
    ]
