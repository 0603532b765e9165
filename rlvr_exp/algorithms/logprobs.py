"""Log-probabilities of drawn tokens, under the distribution that they were drawn from.

Temperature divides the logits. If top-k, top-p or min-p left only some tokens, the probabilities of those are renormalised:
log p(t) = z_t / tau - log sum over the kept k of exp(z_k / tau). Logits are computed only for positions that predict a token.

On CPUs a plain head in float32 is fused (`scoring`): the logits of the predicted tokens are one product. In the same memory
they become the exponentials of a softmax, and in the backward pass the gradient of the logits: a pass holds tokens x
vocabulary numbers once. Beyond `FUSED_HELD` of them, rows are computed in parts that the backward pass computes again.
Elsewhere, if there are too many logits to hold at once (`HELD`), TRL's fused head computes them tile by tile. If only some
tokens were kept, `Tiled` takes the place of TRL's function: it computes all logits of a few tokens at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel
from trl.trainer import utils as trl_utils

from rlvr_exp.algorithms.packing import FLEX, SDPA_PACKED, ModelRows, attending, block_mask
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.onednn_linear import filled_rows, outer, product

FUSED_HELD = 2**28
"""The most logits held at once, tokens x vocabulary: 1 GiB in float32."""
_NEAR = 2**21
"""Logits that are worked on at a time, so that they stay in the processor's caches."""
CHANGED = ("final_logit_softcapping", "logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")
"""Fields of a configuration with which a model changes its logits after its head."""


@dataclass(frozen=True)
class Drawn:
    """The tokens to score.

    Args:
        places: (m,) the positions that predict them, counted through all rows.
        labels: (m,)
        temperature: divides the logits.
        kept_token_ids: as for `logprobs.score`.
        entropy, top: whether the entropies are requested, and whether each token is the most probable one.
    """

    places: torch.Tensor
    labels: torch.Tensor
    temperature: float
    kept_token_ids: torch.Tensor | None
    entropy: bool
    top: bool


def plain_head(model: nn.Module) -> nn.Linear | None:
    """The head of a model whose logits are its linear product with hidden states on CPU in float32; None for others."""
    inner = next((part for part in model.modules() if isinstance(part, PreTrainedModel)), None)
    if inner is None or torch.is_autocast_enabled("cpu"):
        return None
    head = inner.get_output_embeddings()
    if type(head) is not nn.Linear:
        return None
    changed = any(getattr(inner.config.get_text_config(), name, None) is not None for name in CHANGED)
    weight = head.weight
    plain = type(weight) is nn.Parameter and weight.device.type == "cpu" and weight.dtype == torch.float32
    sharded = hasattr(weight, "ds_id")
    usable = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return head if plain and usable and not changed and not sharded else None


@contextmanager
def scoring(head: nn.Linear, drawn: Drawn) -> Iterator[None]:
    """Inside the block the head returns (1, m, fields) instead of logits: log-probabilities, then entropies and whether a token
    is the most probable one if they are requested."""

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden.reshape(-1, hidden.shape[-1])
        if len(hidden) != len(drawn.labels):  # Otherwise the model has selected them.
            hidden = hidden[drawn.places]
        logprobs, entropies, top = _LogProbabilities.apply(hidden, head.weight, head.bias, drawn)
        wanted = [logprobs, *[entropies] * drawn.entropy, *[top] * drawn.top]
        return torch.stack(wanted, -1)[None]

    with _forward(head, forward):
        yield


@contextmanager
def _forward(head: nn.Linear, forward: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """Inside the block the head computes `forward`."""
    own = vars(head).get("forward")
    head.forward = forward
    try:
        yield
    finally:
        del head.forward
        if own is not None:
            head.forward = own


class _LogProbabilities(torch.autograd.Function):
    """(m, width) hidden states -> (m,) log-probabilities, entropies, and 1 for the most probable token."""

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, drawn: Drawn
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        ctx.set_materialize_grads(False)
        learns = any(ctx.needs_input_grad)
        found = torch.zeros(4, len(hidden))
        ctx.exponentials = None
        for rows in _parts(len(hidden), len(weight), FUSED_HELD if learns else _NEAR * 8):
            exponentials = product(filled_rows(hidden[rows]), weight, bias)
            for near, whole in _near(rows, len(weight)):
                _exponentiate(exponentials[near], drawn, whole, found)
            if learns and rows.stop - rows.start == len(hidden):
                ctx.exponentials = exponentials
        logprobs, entropies, top, sums = found
        ctx.drawn = drawn
        ctx.save_for_backward(hidden, weight, bias, entropies, sums)
        ctx.mark_non_differentiable(top)
        return logprobs, entropies, top

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[Any, ...]:
        hidden, weight, bias, entropies, sums = ctx.saved_tensors
        drawn, held = ctx.drawn, ctx.exponentials
        ctx.exponentials = None  # It becomes the gradient; a second backward pass computes it again.
        for_hidden, for_weight, for_bias, _ = ctx.needs_input_grad
        of_logprobs, of_entropies, _ = grads
        of_logprobs = torch.zeros_like(sums) if of_logprobs is None else of_logprobs
        if of_entropies is not None and not of_entropies.any():
            of_entropies = None
        to_hidden = torch.empty_like(hidden) if for_hidden else None
        to_weight = torch.zeros_like(weight) if for_weight and not len(hidden) else None
        to_bias = torch.zeros_like(bias) if for_bias else None
        for rows in _parts(len(hidden), len(weight), FUSED_HELD):
            x = filled_rows(hidden[rows])
            exponentials = product(x, weight, bias) if held is None else held
            for near, whole in _near(rows, len(weight)):
                part = exponentials[near]
                if held is None:
                    _exponentiate(part, drawn, whole)
                spread = None if of_entropies is None else (of_entropies[whole], entropies[whole])
                _to_gradient(part, drawn, whole, of_logprobs[whole], spread, sums[whole])
            exponentials[rows.stop - rows.start :] = 0.0
            if to_hidden is not None:
                to_hidden[rows] = product(exponentials, weight.t())[: rows.stop - rows.start]
            if for_weight:
                own = outer(exponentials, x)
                to_weight = own if to_weight is None else to_weight.add_(own)
            if to_bias is not None:
                to_bias += exponentials.sum(0)
        return to_hidden, to_weight, to_bias, None


def _near(rows: slice, vocabulary: int) -> Iterator[tuple[slice, slice]]:
    """Small ranges within `rows`: counted from its start, and as they are."""
    for near in _parts(rows.stop - rows.start, vocabulary, _NEAR):
        yield near, slice(rows.start + near.start, rows.start + near.stop)


def _parts(count: int, vocabulary: int, most: int) -> Iterator[slice]:
    """Ranges of rows of no more logits than `most`, at least one row each."""
    size = max(1, most // vocabulary)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _exponentiate(part: torch.Tensor, drawn: Drawn, rows: slice, found: torch.Tensor | None = None) -> None:
    """Turn logits into the exponentials of their distance from the largest one, and note the sums of their rows in `found`."""
    if drawn.temperature != 1.0:
        part.div_(drawn.temperature)
    if drawn.kept_token_ids is not None:
        part.masked_fill_(~kept(drawn.kept_token_ids[rows], part.shape[-1]), -torch.inf)
    labels = drawn.labels[rows, None]
    if found is not None and drawn.top:
        found[2, rows] = (part.argmax(-1, keepdim=True) == labels)[:, 0].to(part.dtype)
    part.sub_(part.amax(-1, keepdim=True))
    if found is None:
        part.exp_()
        return
    chosen = part.gather(-1, labels)[:, 0]
    logits = part.clone() if drawn.entropy else None
    sums = part.exp_().sum(-1)
    found[0, rows], found[3, rows] = chosen - sums.log(), sums
    if logits is not None:
        # Excluded tokens have probability 0 and an infinite logit; their term is 0.
        terms = logits.masked_fill_(part == 0, 0.0).mul_(part).sum(-1)
        found[1, rows] = sums.log() - terms / sums


def _to_gradient(
    part: torch.Tensor,
    drawn: Drawn,
    rows: slice,
    of_logprobs: torch.Tensor,
    spread: tuple[torch.Tensor, torch.Tensor] | None,
    sums: torch.Tensor,
) -> None:
    """Turn exponentials into the gradient of the logits before the temperature.

    Args:
        spread: the gradient of the entropies, and these.
    """
    labels, scale = drawn.labels[rows, None], 1.0 / drawn.temperature
    factors = -of_logprobs / sums * scale
    if spread is None:
        part.mul_(factors[:, None])
    else:
        of_entropies, entropies = spread
        # d entropy / d logit = -p (log p + entropy)
        logs = part.clamp_min(torch.finfo(part.dtype).tiny).log_().add_((entropies - sums.log())[:, None])
        part.mul_(factors[:, None] - (of_entropies / sums * scale)[:, None] * logs)
    part.scatter_add_(-1, labels, (of_logprobs * scale)[:, None])


def kept(kept_token_ids: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """(m, vocabulary) booleans from (m, K) ids padded with -1; a row of -1 alone keeps all."""
    found = torch.zeros((len(kept_token_ids), vocabulary + 1), dtype=torch.bool, device=kept_token_ids.device)
    found.scatter_(1, kept_token_ids.where(kept_token_ids >= 0, vocabulary), True)
    found = found[:, :vocabulary]
    return found | (kept_token_ids < 0).all(1, keepdim=True)


HELD = 2**26
"""The most logits held at once, tokens x vocabulary: 256 MiB in float32."""
KEPT_HELD = 2**24
"""The same while `Tiled` works on them, in about ten tensors."""


@contextmanager
def restricted(kept_token_ids: torch.Tensor, places: torch.Tensor) -> Iterator[None]:
    """Inside the block, TRL's fused head renormalises the probabilities over the kept ids.

    Args:
        kept_token_ids: as for `score`.
        places: (m,) the positions that they belong to, counted through all rows, ascending.
    """
    own = trl_utils._ChunkedLogProbFunction

    def apply(
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        labels: torch.Tensor,
        temperature: float,
        _tile: int,
        softcap: float | None,
        scale: float,
        outputs: Sequence[str],
    ) -> tuple[torch.Tensor | None, ...]:
        every = len(hidden)
        if every != len(places):  # Without Triton, TRL passes all positions.
            hidden, labels = hidden[places], labels[places]
        head = _KeptHead(labels, kept_token_ids, temperature, scale, softcap, "entropy" in outputs)
        found = Tiled.apply(hidden, weight, bias, head)
        if every != len(places):
            found = [values.new_zeros(every).index_put((places,), values) for values in found]
        logprobs, *entropies, top = found
        spread = entropies[0] if head.entropy else None
        return logprobs, spread, None, None, top.bool() if "is_top1" in outputs else None

    trl_utils._ChunkedLogProbFunction = SimpleNamespace(apply=apply)
    try:
        yield
    finally:
        trl_utils._ChunkedLogProbFunction = own


class TiledHead(Protocol):
    """Turns logits into figures of each token."""

    constants: int
    """The last so many figures take no gradient."""

    def figures(self, logits: torch.Tensor, rows: slice) -> tuple[torch.Tensor, ...]:
        """(r, vocabulary) logits of the tokens `rows` of all -> (r,) each, in float32."""


@dataclass(frozen=True)
class _KeptHead:
    """The tokens to score, (m,) and (m, K), and how a model changes its logits after its head."""

    labels: torch.Tensor
    kept_token_ids: torch.Tensor
    temperature: float
    scale: float
    softcap: float | None
    entropy: bool
    constants: ClassVar[int] = 1

    def figures(self, logits: torch.Tensor, rows: slice) -> tuple[torch.Tensor, ...]:
        """Log-probabilities, entropies if they are requested, and 1 for the most probable token."""
        top = (logits.argmax(-1) == self.labels[rows]).float()
        logits = logits.float() if self.scale == 1.0 else logits.float() * self.scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        found = token_logprobs(logits, self.labels[rows], self.temperature, self.kept_token_ids[rows], self.entropy)
        return (*(one for one in found if one is not None), top)


class Tiled(torch.autograd.Function):
    """(m, width) hidden states -> (m,) each: the figures of a `TiledHead`.

    Both passes hold the logits of a few tokens at a time. The backward pass computes them again, and gathers a head that ZeRO-3
    shards again.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, head: TiledHead
    ) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        device = hidden.device.type
        ctx.dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        ctx.head = head
        ctx.save_for_backward(hidden, weight, bias)
        with torch.autocast(device, enabled=False):
            parts = [
                head.figures(_product(hidden[rows], weight, bias, ctx.dtype), rows)
                for rows in [*_parts(len(hidden), len(weight), KEPT_HELD)] or [slice(0, 0)]
            ]
        found = tuple(torch.cat(each) for each in zip(*parts, strict=True))
        ctx.mark_non_differentiable(*found[len(found) - head.constants :])
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[Any, ...]:
        hidden, weight, bias = ctx.saved_tensors
        for_hidden, for_weight, for_bias, _ = ctx.needs_input_grad
        to_hidden = torch.empty_like(hidden) if for_hidden else None
        with trl_utils.maybe_gather_lm_head_ctx(weight, bias), torch.autocast(hidden.device.type, enabled=False):
            to_weight = torch.zeros_like(weight, dtype=torch.float32) if for_weight else None
            to_bias = torch.zeros_like(bias, dtype=torch.float32) if for_bias else None
            for rows in _parts(len(hidden), len(weight), KEPT_HELD):
                logits = _product(hidden[rows], weight, bias, ctx.dtype).requires_grad_()
                with torch.enable_grad():
                    found = zip(ctx.head.figures(logits, rows), grads, strict=True)
                    made = [(one, grad[rows]) for one, grad in found if grad is not None and one.requires_grad]
                outputs, given = zip(*made, strict=True)
                (of_logits,) = torch.autograd.grad(outputs, logits, given)
                del logits, outputs, made
                if to_hidden is not None:
                    to_hidden[rows] = of_logits @ weight.to(ctx.dtype)
                if to_weight is not None:
                    to_weight += of_logits.t() @ hidden[rows].to(ctx.dtype)
                if to_bias is not None:
                    to_bias += of_logits.sum(0, dtype=torch.float32)
        return (
            to_hidden,
            None if to_weight is None else to_weight.to(weight.dtype),
            None if to_bias is None else to_bias.to(bias.dtype),
            None,
        )


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    return nn.functional.linear(x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))


@dataclass(frozen=True)
class Scores:
    """The scores of the predicted tokens of a forward pass."""

    logprobs: torch.Tensor
    """(m,) float32"""
    entropies: torch.Tensor | None
    """(m,) of the distributions that the tokens were drawn from; None: not requested"""
    top: torch.Tensor | None
    """(m,) booleans: the token is the most probable one; None: not requested"""
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
        fused: compute the head fused if the model has a plain one.
        options: further arguments of the model.
    """
    inputs, kept = _inputs(rows, implementation, options)
    head = plain_head(model) if fused else None
    with attending(model, implementation) if rows.layout is not None else nullcontext():
        if head is not None:
            with scoring(head, Drawn(rows.scored, rows.labels, temperature, kept_token_ids, entropy, top)):
                output = model(**inputs, **kept)
            logprobs, *others = output.logits[0].unbind(-1)
            entropies = others[0] if entropy else None
            return Scores(logprobs, entropies, others[-1].bool() if top else None, output)
        vocabulary = model_config(model).get_text_config().vocab_size
        if len(rows.labels) * vocabulary > HELD:
            only = nullcontext() if kept_token_ids is None else restricted(kept_token_ids, rows.scored)
            with only:
                output = model(**inputs, shift_labels=rows.shifted_labels(), fused_lm_head=True)
            logprobs, entropies, best = (
                values.flatten()[rows.scored] if wanted else None
                for values, wanted in ((output.log_probs, True), (output.entropy, entropy), (output.is_top1, top))
            )
            return Scores(logprobs, entropies, best, output)
        output = model(**inputs, **kept)
    logits = output.logits.flatten(0, 1)
    logits = logits if kept and len(logits) == len(rows.scored) else logits[rows.scored]
    best = logits.argmax(-1) == rows.labels if top else None
    return Scores(*token_logprobs(logits, rows.labels, temperature, kept_token_ids, entropy), best, output)


def _inputs(rows: ModelRows, implementation: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model's arguments for rows, and those that select the positions of its head."""
    inputs = {"input_ids": rows.input_ids, "position_ids": rows.position_ids, "use_cache": False, **options}
    if rows.layout is None:
        inputs["attention_mask"] = rows.attention_mask
    elif implementation != FLEX:
        inputs |= {"packed_layout": rows.layout, "attention_mask": None}
    else:
        # Rows of less than 128 tokens would go to FlexAttention's kernel for decoding, which takes no grouped queries of this
        # length (torch 2.11: "No choices to select").
        kernel = {"FORCE_USE_FLEX_ATTENTION": True}
        inputs |= {"attention_mask": block_mask(rows.layout, rows.input_ids.device), "kernel_options": kernel}
    # One row: the model's head computes only the predictions. Several rows: the head cannot select positions per row.
    # The positions come from the host, since the head may be on another device than the rows.
    places = rows.scored if rows.scored_on_host is None else rows.scored_on_host
    return inputs, {"logits_to_keep": places} if len(rows.input_ids) == 1 else {}


def with_head(
    model: torch.nn.Module,
    rows: ModelRows,
    compute: Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor],
    implementation: str = SDPA_PACKED,
    **options: Any,
) -> tuple[torch.Tensor, Any]:
    """One forward pass with a function in place of the model's head.

    Args:
        compute: the (m, width) hidden states of the predictions, and weight and bias of the head -> (m, fields).

    Returns:
        What `compute` returned, and the model's own output.

    Raises:
        InputError: the model changes its logits after its head, or has a head that is no plain linear layer.
    """
    head = linear_head(model)
    inputs, kept = _inputs(rows, implementation, options)

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden.reshape(-1, hidden.shape[-1])
        if len(hidden) != len(rows.scored):  # Otherwise the model has selected them.
            hidden = hidden[rows.scored]
        return compute(hidden, head.weight, head.bias)[None]

    with attending(model, implementation) if rows.layout is not None else nullcontext(), _forward(head, forward):
        output = model(**inputs, **kept)
    return output.logits[0], output


def linear_head(model: nn.Module) -> nn.Linear:
    inner = next(part for part in model.modules() if isinstance(part, PreTrainedModel))
    head = inner.get_output_embeddings()
    changed = [name for name in CHANGED if getattr(inner.config.get_text_config(), name, None) is not None]
    if type(head) is not nn.Linear or changed:
        what = "a divergence is computed from a plain linear head"
        got = f"{type(head).__name__} {', '.join(changed)}".strip()
        raise InputError(InputProblem("model", what, got, "a head without adapter, quantization or scaling of logits"))
    return head


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
    logits = precise(logits) if temperature == 1.0 else precise(logits) / temperature
    if kept_token_ids is not None:
        logits = logits.masked_fill(~kept(kept_token_ids, logits.shape[-1]), -torch.inf)
    scores = logits.log_softmax(-1)
    logprobs = scores.gather(-1, labels[:, None]).squeeze(-1)
    if not entropy:
        return logprobs, None
    # Excluded tokens have probability 0 and log-probability -inf; their term is 0.
    terms = scores.exp() * scores.masked_fill(scores.isneginf(), 0.0)
    return logprobs, -terms.sum(-1)


def precise(logits: torch.Tensor) -> torch.Tensor:
    """In float32, or in float64 if they are."""
    return logits if logits.dtype == torch.float64 else logits.float()


def model_config(model: torch.nn.Module) -> Any:
    """The configuration of the model inside its wrappers (DeepSpeed's wrapper has its own configuration)."""
    while not hasattr(getattr(model, "config", None), "get_text_config"):
        model = model.module
    return model.config
