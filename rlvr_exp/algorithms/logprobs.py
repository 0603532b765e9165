"""Log-probabilities of drawn tokens under the distribution that they were drawn from.

Temperature divides the logits; where top-k, top-p or min-p left only some tokens, the probabilities of those are
renormalised: log p(t) = z_t / tau - log sum over the kept k of exp(z_k / tau). Logits are computed only for positions that
predict a token. On CPUs a plain head is algorithms.fused_head; elsewhere, if there are too many logits to hold at once, TRL's
fused head computes them tile by tile.
"""

from dataclasses import dataclass
from typing import Any

import torch

from rlvr_exp.algorithms.fused_head import Drawn, kept, plain_head, scoring
from rlvr_exp.algorithms.packing import ModelRows
from rlvr_exp.algorithms.packing_attention import FLEX, SDPA_PACKED, attending, block_mask

HELD = 2**26
"""The most logits held at once, tokens x vocabulary: 256 MiB in float32."""


@dataclass(frozen=True)
class Scores:
    """The scores of the predicted tokens of a forward pass."""

    logprobs: torch.Tensor
    """(m,) float32"""
    entropies: torch.Tensor | None
    """(m,) of the distributions that the tokens were drawn from; None where not requested"""
    top: torch.Tensor | None
    """(m,) booleans: the token is the most probable one; None where not requested"""
    output: Any
    """The model's own output with its other fields; positions are those of the rows."""


def score(
    model: torch.nn.Module,
    rows: ModelRows,
    temperature: float,
    kept_token_ids: torch.Tensor | None = None,
    entropy: bool = False,
    implementation: str = SDPA_PACKED,
    top: bool = False,
    fused: bool = True,
    **options: Any,
) -> Scores:
    """Score the tokens of the rows.

    Args:
        model: a causal language model with TRL's fused head, wrapped or not.
        kept_token_ids: (m, K) the ids kept when each token was drawn, padded with -1; a row of -1 alone keeps all.
        implementation: how a packed row is attended to.
        fused: compute the head by algorithms.fused_head if the model has a plain one.
        options: further arguments of the model.
    """
    inputs = {"input_ids": rows.input_ids, "position_ids": rows.position_ids, "use_cache": False, **options}
    if rows.layout is None:
        inputs["attention_mask"] = rows.attention_mask
        return _headed(model, rows, inputs, temperature, kept_token_ids, entropy, top, fused)
    with attending(model, implementation):
        seen = _seen(rows, implementation)
        return _headed(model, rows, {**inputs, **seen}, temperature, kept_token_ids, entropy, top, fused)


def _seen(rows: ModelRows, implementation: str) -> dict[str, Any]:
    """What tells a packed row's attention who sees what."""
    if implementation != FLEX:
        return {"packed_layout": rows.layout, "attention_mask": None}
    # Rows of less than 128 tokens would go to FlexAttention's kernel for decoding, which takes no grouped queries of this
    # length (torch 2.11: "No choices to select").
    kernel = {"FORCE_USE_FLEX_ATTENTION": True}
    return {"attention_mask": block_mask(rows.layout, rows.input_ids.device), "kernel_options": kernel}


def _headed(
    model: torch.nn.Module,
    rows: ModelRows,
    inputs: dict[str, Any],
    temperature: float,
    kept_token_ids: torch.Tensor | None,
    entropy: bool,
    top: bool,
    fused: bool,
) -> Scores:
    # One row: the model's head computes only the predictions. Several rows: the head cannot select positions per row.
    kept = {"logits_to_keep": rows.scored.cpu()} if len(rows.input_ids) == 1 else {}
    head = plain_head(model) if fused else None
    if head is not None:
        with scoring(head, Drawn(rows.scored, rows.labels, temperature, kept_token_ids, entropy, top)):
            output = model(**inputs, **kept)
        logprobs, *others = output.logits[0].unbind(-1)
        entropies = others[0] if entropy else None
        return Scores(logprobs, entropies, others[-1].bool() if top else None, output)
    vocabulary = model_config(model).get_text_config().vocab_size
    if kept_token_ids is None and len(rows.labels) * vocabulary > HELD:
        output = model(**inputs, shift_labels=rows.shifted_labels(), fused_lm_head=True)
        found = (output.log_probs, output.entropy if entropy else None, output.is_top1 if top else None)
        return Scores(*(None if values is None else values.flatten()[rows.scored] for values in found), output)
    output = model(**inputs, **kept)
    logits = output.logits.flatten(0, 1)
    logits = logits if kept and len(logits) == len(rows.scored) else logits[rows.scored]
    best = logits.argmax(-1) == rows.labels if top else None
    return Scores(*token_logprobs(logits, rows.labels, temperature, kept_token_ids, entropy), best, output)


def token_logprobs(
    logits: torch.Tensor,
    labels: torch.Tensor,
    temperature: float,
    kept_token_ids: torch.Tensor | None = None,
    entropy: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """((m,) log-probabilities, (m,) entropies or None) in float32.

    Args:
        logits: (m, vocabulary), before the temperature.
        labels: (m,)
        kept_token_ids: (m, K) kept ids, padded with -1; a row of -1 alone keeps all.
    """
    logits = logits.float() if temperature == 1.0 else logits.float() / temperature
    if kept_token_ids is not None:
        logits = logits.masked_fill(~kept(kept_token_ids, logits.shape[-1]), -torch.inf)
    scores = logits.log_softmax(-1)
    logprobs = scores.gather(-1, labels[:, None]).squeeze(-1)
    if not entropy:
        return logprobs, None
    # Excluded tokens have probability 0 and log-probability -inf; their term is 0.
    terms = scores.exp() * scores.masked_fill(scores.isneginf(), 0.0)
    return logprobs, -terms.sum(-1)


def model_config(model: torch.nn.Module) -> Any:
    """The configuration of the model inside its wrappers (DeepSpeed's wrapper has its own configuration)."""
    while not hasattr(getattr(model, "config", None), "get_text_config"):
        model = model.module
    return model.config
