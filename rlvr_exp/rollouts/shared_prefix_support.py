"""Whether an architecture can be decoded with a shared prefix: tried on the model itself once, with a few tokens.

An architecture's declarations are not enough: a model that computes its attention in another way, or drops an argument on
the way to it, would sample from a distribution other than the trained one.
"""

import warnings
from weakref import WeakKeyDictionary

import numpy as np
import torch
from transformers import PreTrainedModel

from rlvr_exp.rollouts.shared_prefix_cache import CannotGroup
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
"""The largest allowed mean difference of log-probabilities by dtype; ROUGH for all other dtypes."""
ROUGH = 0.1
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
    every = "sliding_attention" if getattr(config, "sliding_window", None) else "full_attention"
    kinds = set(getattr(config, "layer_types", None) or [every]) - {"full_attention"}
    if kinds - ({"sliding_attention"} if not _window(model, longest) else set()):
        return f"it has layers of kind {', '.join(sorted(kinds))}"
    try:
        gap = _gap(model)
    except (CannotGroup, TypeError) as fault:  # TypeError: an argument that its forward pass does not know
        return str(fault)
    allowed = TOLERANCE.get(model.dtype, ROUGH)
    return "" if gap <= allowed else f"log-probabilities would be off by {gap:.2g}"


@torch.inference_mode()
def _gap(model: PreTrainedModel) -> float:
    """Mean difference of log-probabilities from those of plain passes, for two prompts with two completions each."""
    first = max(0, min(3, model.config.vocab_size - 12))
    prompts = [list(range(first, first + 7)), list(range(first + 2, first + 6))]
    tokens = np.array([[1, 8], [5, 3], [4, 9], [10, 6]]) + first
    owner, live = np.array([0, 0, 1, 1]), np.arange(4)
    decoder = SharedPrefixDecoder(model, prompts, owner, 2)
    with decoder.computing():
        decoder.prefill()
        for place in range(2):
            logits = decoder.step(live, tokens[:, place : place + 1]).of_tokens()
    rows = [prompts[owner[i]] + tokens[i].tolist() for i in live]
    plain = [model(input_ids=torch.tensor([row], device=model.device)).logits[0, -1] for row in rows]
    return (logits.float().log_softmax(-1) - torch.stack(plain).float().log_softmax(-1)).abs().mean().item()
