"""Whether a token has the same bits whatever is computed with it: tried on the model itself, on the machine at hand.

It rests on what rlvr_exp.rollouts.exact_products and oneDNN's linear layers do with more rows and more columns, which no
library promises. Where it does not hold nothing is guessed (rlvr_exp.rollouts.drafts).
"""

from copy import copy
from weakref import WeakKeyDictionary

import numpy as np
import torch
from transformers import PreTrainedModel

from rlvr_exp.rollouts.exact_products import EXACT
from rlvr_exp.rollouts.plain_forward import ROPES, is_plain, rope_type
from rlvr_exp.rollouts.shared_prefix_cache import CannotGroup
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder

SHORTEST = 50
"""Tokens of a completion that the trial needs."""
LAYERS = 4
"""Layers of a plain model that are tried: all of SmolLM2's 30 took as long as a batch of completions."""
LAST = 8
"""Tokens at the end of each completion whose logits are compared."""
_KNOWN: WeakKeyDictionary[PreTrainedModel, dict[tuple, bool]] = WeakKeyDictionary()


def is_exact(model: PreTrainedModel) -> bool:
    """Whether SharedPrefixDecoder computes tokens of prompts and of completions with the same bits in any company. Tried once
    for each dtype, forward pass and number of threads."""
    known = _KNOWN.setdefault(model, {})
    key = model.dtype, is_plain(model), torch.get_num_threads()
    if key not in known:
        known[key] = model.device.type == "cpu" and rope_type(model) in ROPES and _same_bits(_shortened(model))
    return known[key]


def _shortened(model: PreTrainedModel) -> PreTrainedModel:
    """A plain model with its first LAYERS layers alone, since the products of all layers have the same shapes; others whole."""
    if not is_plain(model):
        return model
    body, short = copy(model.model), copy(model)
    body._modules = {**body._modules, "layers": body.layers[:LAYERS]}
    short._modules = {**short._modules, "model": body}
    return short


@torch.inference_mode()
def _same_bits(model: PreTrainedModel) -> bool:
    """Four completions over more than one part of columns: in passes of equal shares, in passes of uneven ones and token by
    token at the end, and the first with its prompt alone. No pass has more than 64 tokens, whose logits take memory."""
    size = min(EXACT + 6, _longest(model) // 2)
    if size < SHORTEST:
        return False
    generator = torch.Generator().manual_seed(0)
    lengths = [min(length, _longest(model) - size) for length in (EXACT + 5, EXACT + 58, 10, 5)]
    prompts = [torch.randint(model.config.vocab_size, (n,), generator=generator).tolist() for n in lengths]
    tokens = torch.randint(model.config.vocab_size, (4, size), generator=generator).numpy()
    try:
        even = _last_logits(model, prompts, tokens, [16, 16, 16, 16])
        uneven = _last_logits(model, prompts, tokens, [24, 9, 16, 5], singly=LAST)
        alone = _last_logits(model, prompts[:1], tokens[:1], [40])
    except (CannotGroup, TypeError):  # TypeError: an argument that its forward pass does not know
        return False
    return torch.equal(even, uneven) and torch.equal(even[:1], alone)


def _longest(model: PreTrainedModel) -> int:
    """Tokens of a sequence of the trial: within the model's positions and its sliding window."""
    limits = (getattr(model.config, name, None) for name in ("max_position_embeddings", "sliding_window"))
    return min(limit for limit in (*limits, 4 * EXACT) if limit)


def _last_logits(
    model: PreTrainedModel, prompts: list[list[int]], tokens: np.ndarray, each: list[int], singly: int = 0
) -> torch.Tensor:
    """(completions, LAST, vocabulary) behind the last tokens of one completion of each prompt, of which a pass takes up to
    `each`, and one where no more than `singly` are left."""
    count, size = tokens.shape
    decoder = SharedPrefixDecoder(model, prompts, np.arange(count), size)
    found: list[list[torch.Tensor]] = [[] for _ in prompts]
    fed = np.zeros(count, dtype=np.int64)
    with decoder.computing():
        decoder.prefill()
        while (live := np.flatnonzero(fed < size)).size:
            left = (size - fed)[live]
            counts = np.where(left <= singly, 1, np.minimum(np.array(each)[live], np.maximum(left - singly, 1)))
            columns = np.minimum(fed[live, None] + np.arange(counts.max()), size - 1)
            logits = decoder.step(live, tokens[live[:, None], columns], counts).of_tokens()
            for i, own in zip(live, logits.split(counts.tolist()), strict=True):
                found[i] = [torch.cat([*found[i], own])[-LAST:].clone()]
            fed[live] += counts
    return torch.stack([own[0] for own in found])
