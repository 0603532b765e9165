"""Whether an architecture can be decoded with a shared prefix: tried on the model itself once, with a few tokens.

An architecture's declarations are not enough: a model that computes its attention in another way, or drops an argument on
the way to it, would sample from a distribution other than the trained one.
"""

import warnings
from weakref import WeakKeyDictionary

import numpy as np
import torch
from transformers import PreTrainedModel

from rlvr_exp.rollouts.exact_products import EXACT
from rlvr_exp.rollouts.shared_prefix_cache import CannotGroup
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
"""The largest allowed mean difference of log-probabilities by dtype; ROUGH for all other dtypes."""
ROUGH = 0.1
SHORTEST = 16
"""Tokens of a completion that a trial of its bits needs."""
_EXACT: WeakKeyDictionary[PreTrainedModel, bool] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[PreTrainedModel, dict[int, bool]] = WeakKeyDictionary()


def supports_shared_prefix(model: PreTrainedModel, longest: int) -> bool:
    """Whether SharedPrefixDecoder supports this model for sequences up to `longest` tokens; warns once about a model that
    it does not support."""
    known = _KNOWN.setdefault(model, {})
    window = _window(model, longest)
    if window not in known:
        reason = _reason(model, longest)
        known[window] = not reason
        if reason:
            text = f"{type(model).__name__} is sampled row by row, slower and with more memory: {reason}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    return known[window]


def _window(model: PreTrainedModel, longest: int) -> int:
    """0 for sequences within the sliding window, which has no effect on them; otherwise 1."""
    window = getattr(model.config, "sliding_window", None)
    return 0 if window is None or longest <= window else 1


def _reason(model: PreTrainedModel, longest: int) -> str:
    """Why the model is not supported; empty where it is."""
    config = model.config
    if not type(model)._supports_attention_backend or config.get_text_config() is not config:
        return "its attention is not exchangeable"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
    if kinds - ({"sliding_attention"} if not _window(model, longest) else set()):
        return f"it has layers of kind {', '.join(sorted(kinds))}"
    try:
        gap = _gap(model)
    except (CannotGroup, TypeError) as fault:  # TypeError: an argument that its forward pass does not know
        return str(fault)
    allowed = TOLERANCE.get(model.dtype, ROUGH)
    return "" if gap <= allowed else f"log-probabilities would be off by {gap:.2g}"


def is_exact(model: PreTrainedModel) -> bool:
    """Whether SharedPrefixDecoder computes a token with the same bits in any company, tried once: rlvr_exp.rollouts.exact_products
    has what that rests on."""
    if model not in _EXACT:
        _EXACT[model] = model.device.type == "cpu" and _same_bits(model)
    return _EXACT[model]


@torch.inference_mode()
def _same_bits(model: PreTrainedModel) -> bool:
    """Three completions over more than one part of columns: in long passes, alone and token by token."""
    generator = torch.Generator().manual_seed(0)
    positions = getattr(model.config, "max_position_embeddings", None) or 2 * EXACT + 11
    size = min(EXACT + 6, positions // 2)
    if size < SHORTEST:
        return False
    lengths = (min(EXACT + 5, positions - size), 10, 5)
    prompts = [torch.randint(model.config.vocab_size, (n,), generator=generator).tolist() for n in lengths]
    tokens = torch.randint(model.config.vocab_size, (3, size), generator=generator)
    everything = _logits(model, prompts, tokens, [[size] * 3])
    alone = [
        _logits(model, prompts, tokens, cuts) for cuts in ([[size, 0, 0]], [[0, 3, 0], [0, size - 4, 0], [0, 1, 0]])
    ]
    single = [[1, 1, 1]] * 4
    steps = _logits(model, prompts, tokens, [[size - 4, 2, 2], *single, [0, 4, size - 6], [0, 1, 0], [0, size - 11, 0]])
    same = torch.equal(everything[0], alone[0][0]) and torch.equal(everything[1], alone[1][1])
    return same and all(torch.equal(one, other) for one, other in zip(everything, steps, strict=True))


def _logits(
    model: PreTrainedModel, prompts: list[list[int]], tokens: torch.Tensor, passes: list[list[int]]
) -> list[torch.Tensor]:
    """Logits behind the tokens of one completion of each prompt, fed in passes of so many tokens each."""
    decoder = SharedPrefixDecoder(model, prompts, np.arange(len(prompts)), tokens.shape[1])
    decoder.prefill()
    found: list[list[torch.Tensor]] = [[] for _ in prompts]
    fed = np.zeros(len(prompts), dtype=np.int64)
    for counts in map(np.array, passes):
        live = np.flatnonzero(counts)
        given = np.full((len(live), counts.max()), -1)
        for row, i in enumerate(live):
            given[row, : counts[i]] = tokens[i, fed[i] : fed[i] + counts[i]]
        logits = decoder.step(live, given, counts[live]).of_tokens()
        for i, own in zip(live, logits.split(counts[live].tolist()), strict=True):
            found[i].append(own)
        fed += counts
    return [torch.cat(own) if own else torch.empty(0) for own in found]


@torch.inference_mode()
def _gap(model: PreTrainedModel) -> float:
    """Mean difference of log-probabilities from those of plain passes, for two prompts with two completions each."""
    first = max(0, min(3, model.config.vocab_size - 12))
    prompts = [list(range(first, first + 7)), list(range(first + 2, first + 6))]
    tokens = np.array([[1, 8], [5, 3], [4, 9], [10, 6]]) + first
    owner, live = np.array([0, 0, 1, 1]), np.arange(4)
    decoder = SharedPrefixDecoder(model, prompts, owner, 2)
    decoder.prefill()
    for place in range(2):
        logits = decoder.step(live, tokens[:, place : place + 1]).of_tokens()
    rows = [prompts[owner[i]] + tokens[i].tolist() for i in live]
    plain = [model(input_ids=torch.tensor([row], device=model.device)).logits[0, -1] for row in rows]
    return (logits.float().log_softmax(-1) - torch.stack(plain).float().log_softmax(-1)).abs().mean().item()
