"""Whether and how a model trains on packed rows, and its decoder layers as functions with their own gradients on CPU.

`choose` tries packed rows on a few tokens, against one row per completion. Models whose tokens influence each other in ways
other than attention (recurrent or convolutional states), or whose attention ignores its arguments, give other
log-probabilities when packed; they are trained row by row.

`packed_layers` switches the decoder layers of plain models (Llama, Mistral, Qwen2, Qwen3), on CPU in float32, for the length
of a pass; `differs` compares one with the plain layer. Products that read the same input are one product, whose weights
contain the norm before it; residuals are added by the product that ends a branch; positions are turned as complex numbers in
place. For each token the function keeps its input, the queries, keys and values, the attention's output, the input of the
feed-forward part and the two factors of its gate: 2 + (heads + 2 key-value heads) d + heads d + 2 widths. Norms and the gated
product are computed again in the backward pass, a few rows at a time, so that they stay in the processor's caches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import silu
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from rlvr_exp.algorithms.logprobs import model_config, plain_head, score
from rlvr_exp.algorithms.packing import (
    FLEX,
    SDPA_PACKED,
    CannotPack,
    ModelRows,
    PackedLayout,
    attended,
    attended_backward,
    attending,
    block_mask,
    packed,
    row_by_row,
)
from rlvr_exp.models.onednn_linear import outer, packable, padded_rows, product

PLAIN = ("LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer", "Qwen3DecoderLayer")
_NEAR = 2**19
"""Numbers that are worked on at a time."""
_JOINED = ("q_proj", "k_proj", "v_proj")


def plain_layers(model: nn.Module) -> list[nn.Module]:
    """The layers that `packed_layers` switches: as the library builds them, with PyTorch's own linear layers, trained without
    dropout, and with nothing attached to a module."""
    return [layer for layer in model.modules() if type(layer).__name__ in PLAIN and _qualifies(layer)]


def _qualifies(layer: nn.Module) -> bool:
    attention, mlp, home = layer.self_attn, layer.mlp, type(layer).__module__
    linear = [*(getattr(attention, name) for name in (*_JOINED, "o_proj")), mlp.gate_proj, mlp.up_proj, mlp.down_proj]
    parts = list(layer.modules())
    attached = any(one._forward_hooks or one._forward_pre_hooks or one._backward_hooks for one in parts[1:])
    own = all(type(one).__module__ == home for one in parts if not isinstance(one, nn.Linear) and one is not mlp.act_fn)
    weights = {type(value) is nn.Parameter and value.dtype == torch.float32 for value in layer.parameters()}
    usual = home.startswith("transformers.models.") and layer.self_attn.config.hidden_act == "silu"
    kept = weights == {True} and not any(hasattr(value, "ds_id") for value in layer.parameters())
    return usual and own and kept and not attached and not attention.attention_dropout and all(map(packable, linear))


@contextmanager
def packed_layers(model: nn.Module) -> Iterator[None]:
    """Inside the block the plain layers of the model compute packed rows by `_Layer`. The block must include the backward pass:
    gradient checkpointing recomputes layers there. Layers that are switched already stay as they are."""
    found = [layer for layer in plain_layers(model) if "forward" not in vars(layer)]
    for layer in found:
        layer.forward = _forward(layer)
    try:
        yield
    finally:
        for layer in found:
            del layer.forward


def _forward(layer: nn.Module) -> Any:
    shape = _Shape.of(layer)

    def forward(
        hidden_states: torch.Tensor,
        *others: Any,
        packed_layout: PackedLayout | None = None,
        position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None,
        **given: Any,
    ) -> torch.Tensor:
        if packed_layout is None or position_embeddings is None or torch.is_autocast_enabled("cpu"):
            given |= {"position_embeddings": position_embeddings}
            if packed_layout is not None:
                given["packed_layout"] = packed_layout
            return type(layer).forward(layer, hidden_states, *others, **given)
        window = getattr(layer.self_attn, "sliding_window", None)
        if window is not None and window < packed_layout.longest:
            raise CannotPack(f"its attention slides over {window} tokens")
        cos, sin = (one[0, :, : shape.size // 2] for one in position_embeddings)
        turns = torch.complex(cos, sin)[:, None]
        return _Layer.apply(hidden_states[0], turns, packed_layout, shape, *_Weights.of(layer))[None]

    return forward


def differs(model: nn.Module) -> str:
    """The reason why the model's layers cannot be switched, by a trial on the first one; empty if output and gradients agree."""
    layers = plain_layers(model)
    if not layers:
        return ""
    layer, layout = layers[0], PackedLayout((5, 0), ((4, 3, 4), (2,)))
    shape, count = _Shape.of(layer), sum(layout.widths)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(1, count, len(layer.input_layernorm.weight), generator=draw)
    angles = torch.rand(1, count, shape.size // 2, generator=draw).repeat(1, 1, 2) * 6
    back = torch.randn(x.shape, generator=draw)
    trained = [value for value in layer.parameters() if value.requires_grad]
    found, before = [], layer.self_attn.config._attn_implementation
    try:
        layer.self_attn.config._attn_implementation = "sdpa_packed"
        for switched in (False, True):
            forward = _forward(layer) if switched else type(layer).forward.__get__(layer)
            with torch.enable_grad():
                given = x.clone().requires_grad_()
                made = forward(given, packed_layout=layout, position_embeddings=(angles.cos(), angles.sin()))
                found.append([made.detach(), *torch.autograd.grad(made, [given, *trained], back)])
    except torch.OutOfMemoryError:
        raise
    except Exception as fault:  # A layer may fail in any way on inputs that it does not expect; the reason is logged.
        return f"{type(fault).__name__}: {fault}".splitlines()[0]
    finally:
        layer.self_attn.config._attn_implementation = before
    apart = max(float((own - plain).norm() / plain.norm().clamp(min=1e-20)) for plain, own in zip(*found, strict=True))
    return "" if apart <= 1e-4 else f"values or gradients of a layer differ by {apart:.2g} of their norm"


@dataclass(frozen=True)
class _Shape:
    """Numbers of a layer."""

    heads: int
    shared: int
    """Heads of keys and of values."""
    size: int
    """Of a head."""
    scaling: float
    eps: tuple[float, float, float]
    """Of the norm before the attention, of that before the feed-forward part, and of those of queries and keys."""
    normed: bool
    """Queries and keys have norms."""
    pairs: torch.Tensor
    """(rows,) of the joint projection: the two dimensions that are turned together side by side."""
    back: torch.Tensor
    """The inverse of `pairs`."""

    @classmethod
    def of(cls, layer: nn.Module) -> "_Shape":
        attention = layer.self_attn
        size = attention.head_dim
        heads, shared = (len(getattr(attention, name).weight) // size for name in ("q_proj", "k_proj"))
        turned = torch.arange(size).view(2, -1).t().reshape(-1)
        rows = torch.arange((heads + 2 * shared) * size).view(-1, size)
        rows[: heads + shared] = rows[: heads + shared, turned]
        pairs = rows.flatten()
        normed = hasattr(attention, "q_norm")
        norms = layer.input_layernorm, layer.post_attention_layernorm, attention.q_norm if normed else None
        eps: Any = tuple(0.0 if norm is None else norm.variance_epsilon for norm in norms)
        return cls(heads, shared, size, attention.scaling, eps, normed, pairs, pairs.argsort())

    @property
    def turned(self) -> int:
        """Heads of queries and keys."""
        return self.heads + self.shared


class _Weights(NamedTuple):
    """Tensors of a layer, or whether each of them needs a gradient; None for parts that the layer lacks."""

    norm: Any
    query: Any
    key: Any
    value: Any
    query_bias: Any
    key_bias: Any
    value_bias: Any
    query_norm: Any
    key_norm: Any
    output: Any
    output_bias: Any
    second_norm: Any
    gate: Any
    up: Any
    gate_bias: Any
    up_bias: Any
    down: Any
    down_bias: Any

    @classmethod
    def of(cls, layer: nn.Module) -> "_Weights":
        attention, mlp = layer.self_attn, layer.mlp
        joined = [getattr(getattr(attention, name), part) for part in ("weight", "bias") for name in _JOINED]
        norms = [getattr(getattr(attention, name, None), "weight", None) for name in ("q_norm", "k_norm")]
        gated = [getattr(one, part) for part in ("weight", "bias") for one in (mlp.gate_proj, mlp.up_proj)]
        output, down = ((one.weight, one.bias) for one in (attention.o_proj, mlp.down_proj))
        return cls(
            layer.input_layernorm.weight,
            *joined,
            *norms,
            *output,
            layer.post_attention_layernorm.weight,
            *gated,
            *down,
        )  # type: ignore[call-arg]

    @property
    def inputs(self) -> torch.Tensor:
        return torch.cat([self.query, self.key, self.value])

    @property
    def inputs_bias(self) -> torch.Tensor | None:
        return _cat_biases((self.query, self.query_bias), (self.key, self.key_bias), (self.value, self.value_bias))

    @property
    def gates(self) -> torch.Tensor:
        return torch.cat([self.gate, self.up])

    @property
    def gates_bias(self) -> torch.Tensor | None:
        return _cat_biases((self.gate, self.gate_bias), (self.up, self.up_bias))

    def head_norms(self, shape: _Shape) -> torch.Tensor:
        """(query and key heads, size) weights of their norms in the order of `pairs`."""
        order = shape.pairs[: shape.size]
        of_query, of_key = self.query_norm[order], self.key_norm[order]
        return torch.cat([of_query.expand(shape.heads, -1), of_key.expand(shape.shared, -1)])


class _Layer(torch.autograd.Function):
    """(tokens, width) -> (tokens, width)"""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        turns: torch.Tensor,
        layout: PackedLayout,
        shape: _Shape,
        *weights: torch.Tensor | None,
    ) -> torch.Tensor:
        w, count, x = _Weights(*weights), len(x), _filled(x)
        scale, bias = _scales(x, shape.eps[0]), w.inputs_bias
        inputs = (w.inputs * w.norm)[shape.pairs]
        both = product(x * scale, inputs, None if bias is None else bias[shape.pairs]).view(len(x), -1, shape.size)
        raw = head_scale = None
        if shape.normed:
            raw = both[:, : shape.turned].clone()
            head_scale = _scales(raw, shape.eps[2])
            both[:, : shape.turned] = raw * head_scale * w.head_norms(shape)
        _turn(both[:count, : shape.turned], turns)
        query, key, value = both[:count].split([shape.heads, shape.shared, shape.shared], 1)
        found, sums = attended(query, key, value, layout, shape.scaling)
        y = _plus(x, _filled(found.flatten(1)), w.output, w.output_bias)
        second_scale = _scales(y, shape.eps[1])
        gated = product(y * second_scale, w.gates * w.second_norm, w.gates_bias)
        z = _plus(y, _gated(gated), w.down, w.down_bias)
        ctx.layout, ctx.shape, ctx.count = layout, shape, count
        ctx.save_for_backward(x, turns, scale, both, raw, head_scale, found, y, second_scale, gated, *weights, *sums)
        return z[:count]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        x, turns, scale, both, raw, head_scale, found, y, second_scale, gated, *rest = ctx.saved_tensors
        fields = len(_Weights._fields)
        w, sums, shape, count = _Weights(*rest[:fields]), rest[fields:], ctx.shape, ctx.count
        needed = _Weights(*ctx.needs_input_grad[4:])
        to: dict[str, torch.Tensor] = {}
        grad = _filled(grad)

        # The feed-forward part.
        if needed.down:
            to["down"] = outer(grad, _gated(gated))
        if needed.down_bias:
            to["down_bias"] = grad.sum(0)
        of_gated = _gated_backward(gated, product(grad, w.down.t()))
        gates = w.gates
        if needed.second_norm or needed.gate or needed.up:
            to_gates = outer(of_gated, y * second_scale)
            to["second_norm"] = (to_gates * gates).sum(0)
            to["gate"], to["up"] = to_gates.mul_(w.second_norm).split([len(w.gate), len(w.up)])
        if needed.gate_bias or needed.up_bias:
            to["gate_bias"], to["up_bias"] = of_gated.sum(0).split([len(w.gate), len(w.up)])
        grad = _norm_backward(product(of_gated, (gates * w.second_norm).t()), y, second_scale, grad)
        del of_gated, gates

        # The attention.
        if needed.output:
            to["output"] = outer(grad, _filled(found.flatten(1)))
        if needed.output_bias:
            to["output_bias"] = grad.sum(0)
        of_found = product(grad, w.output.t())[:count].view(found.shape)
        of_both, parts = torch.zeros_like(both), [shape.heads, shape.shared, shape.shared]
        given, grads = both[:count].split(parts, 1), list(of_both[:count].split(parts, 1))
        attended_backward(of_found, given, found, sums, ctx.layout, shape.scaling, grads)
        of_turned = of_both[:, : shape.turned]
        _turn(of_turned[:count], turns.conj())
        if shape.normed:
            of_norms, back = (of_turned * raw * head_scale).sum(0), shape.back[: shape.size]
            of_query, of_key = of_norms.split([shape.heads, shape.shared])
            to["query_norm"], to["key_norm"] = of_query.sum(0)[back], of_key.sum(0)[back]
            of_turned.copy_(_norm_backward(of_turned * w.head_norms(shape), raw, head_scale, None))
        of_inputs, inputs = of_both.flatten(1), w.inputs
        sizes = [len(w.query), len(w.key), len(w.value)]
        if needed.norm or needed.query or needed.key or needed.value:
            to_inputs = outer(of_inputs, x * scale)[shape.back]
            to["norm"] = (to_inputs * inputs).sum(0)
            to["query"], to["key"], to["value"] = to_inputs.mul_(w.norm).split(sizes)
        if needed.query_bias or needed.key_bias or needed.value_bias:
            to["query_bias"], to["key_bias"], to["value_bias"] = of_inputs.sum(0)[shape.back].split(sizes)
        to_x = None
        if ctx.needs_input_grad[0]:
            of_normed = product(of_inputs, (inputs * w.norm)[shape.pairs].t())
            to_x = _norm_backward(of_normed, x, scale, grad)[:count]
        return (
            to_x,
            None,
            None,
            None,
            *(to[name] if wanted else None for name, wanted in needed._asdict().items()),
        )


def _filled(x: torch.Tensor) -> torch.Tensor:
    """x with rows of zeros up to a number that the products want."""
    missing = padded_rows(len(x)) - len(x)
    return torch.cat([x, x.new_zeros(missing, *x.shape[1:])]) if missing else x


def _plus(residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """residual + x weight^T + bias"""
    return torch.ops.mkldnn._linear_pointwise.binary(x, residual, weight, bias, "add")


def _cat_biases(*rows: tuple[torch.Tensor, torch.Tensor | None]) -> torch.Tensor | None:
    """The biases of joined projections; None if no projection has one."""
    if all(bias is None for _, bias in rows):
        return None
    return torch.cat([weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in rows])


def _turn(x: torch.Tensor, turns: torch.Tensor) -> None:
    """Turn pairs of neighbours in place."""
    torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(turns)


def _near(x: torch.Tensor) -> Iterator[slice]:
    """Ranges of rows that are worked on at a time."""
    size = max(1, _NEAR // max(1, x[0].numel()))
    return (slice(start, min(start + size, len(x))) for start in range(0, len(x), size))


def _scales(x: torch.Tensor, eps: float) -> torch.Tensor:
    """(..., 1) factors that give rows a mean square of one."""
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()


def _norm_backward(
    grad: torch.Tensor, x: torch.Tensor, scale: torch.Tensor, residual: torch.Tensor | None
) -> torch.Tensor:
    """The gradient of x from that of x * scale, written over it, plus the residual branch's."""
    for rows in _near(grad):
        part, normed = grad[rows], x[rows] * scale[rows]
        mean = (part * normed).mean(-1, keepdim=True)
        part.addcmul_(normed, mean, value=-1.0).mul_(scale[rows])
        if residual is not None:
            part.add_(residual[rows])
    return grad


def _gated(gated: torch.Tensor) -> torch.Tensor:
    """(tokens, 2 widths) gate and up -> (tokens, width)"""
    found = gated.new_empty(len(gated), gated.shape[1] // 2)
    for rows in _near(gated):
        gate, up = gated[rows].chunk(2, -1)
        torch.mul(silu(gate), up, out=found[rows])
    return found


def _gated_backward(gated: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    found = torch.empty_like(gated)
    for rows in _near(gated):
        gate, up = gated[rows].chunk(2, -1)
        of_gate, of_up = found[rows].chunk(2, -1)
        torch.mul(grad[rows], silu(gate), out=of_up)
        torch.ops.aten.silu_backward.grad_input(grad[rows] * up, gate, grad_input=of_gate)
    return found


PROMPTS, COMPLETIONS = (19, 12), ((5, 9, 7), (6, 8))
"""Tokens of two prompts and of their completions."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
COARSE = 0.03
"""The mean difference of log-probabilities that counts as rounding: in 32 bits or more, and in fewer."""
WAYS = (FLEX, SDPA_PACKED)
"""In the order in which they are tried."""
ROUNDING = 2.0
"""So many times the difference that two ways of attention over the same rows show counts as rounding, too: in many layers of
few bits it adds up."""


@dataclass(frozen=True)
class Choice:
    """How packed rows are attended to."""

    implementation: str | None
    """None: rows are not packed, one row per completion."""
    reasons: tuple[str, ...]
    """Why each implementation tried before, or every one, cannot be used."""
    fused: bool = False
    """Layers and head are computed by `packed_layers` and the fused head of algorithms.logprobs."""


def choose(
    model: torch.nn.Module,
    longest: int,
    device: torch.device,
    dtype: torch.dtype,
    agree: Callable[[str], str] = lambda reason: reason,
) -> Choice:
    """The first implementation that agrees with one row per completion. Draws no random number, changes nothing.

    Args:
        model: as it is trained, wrapped or not.
        longest: tokens of the longest possible prompt with its completion.
        agree: returns the first reason of all processes against an implementation. All processes call it together, so that
            those that share a model's weights try the same implementation next.
    """
    config = model_config(model).get_text_config()
    sliding = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    reaches = [reach for reach in (sliding, getattr(config, "attention_chunk_size", None)) if reach and reach < longest]
    if reaches:  # A short trial would not show it.
        return Choice(None, (f"attention reaches back {min(reaches)} tokens, and {longest} are allowed",))
    inner = (one for one in model.modules() if isinstance(one, PreTrainedModel))
    if not all(type(one)._supports_attention_backend for one in inner):
        # Its layers would see other examples, which a trial of small weights might not show.
        return Choice(None, ("its attention is not exchangeable",))
    reasons: list[str] = []
    for implementation in _ways(config, device):
        reason = agree(_kernel_fault(config, device, dtype)) if implementation == FLEX else ""
        reason = reason or agree(_difference(model, implementation, device, TOLERANCE.get(dtype, COARSE)))
        if not reason:
            if device.type != "cpu" or dtype != torch.float32 or not (plain_layers(model) or plain_head(model)):
                return Choice(implementation, tuple(reasons))
            reason = differs(model) or _difference(model, implementation, device, TOLERANCE[dtype], fused=True)
            if reason:
                reasons.append(f"layers and head are computed by the library: {reason}")
            return Choice(implementation, tuple(reasons), fused=not reason)
        reasons.append(f"{implementation}: {reason}")
    return Choice(None, tuple(reasons))


def _ways(config: Any, device: torch.device) -> tuple[str, ...]:
    """The implementations to try. FlexAttention has no dropout of attention weights; the trial runs without dropout."""
    return WAYS if device.type == "cuda" and not getattr(config, "attention_dropout", 0.0) else (SDPA_PACKED,)


def _kernel_fault(config: Any, device: torch.device, dtype: torch.dtype) -> str:
    """The reason why FlexAttention's kernels cannot be used; empty if the forward and the backward pass run. Without the
    model: a process that fails in a layer would leave those waiting that share the weights."""
    layout = _rows(config.vocab_size).layout
    assert layout is not None
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    tokens = sum(layout.widths)
    made = partial(torch.ones, dtype=dtype, device=device, requires_grad=True)
    query, key, value = (
        made(1, count, tokens, size) for count in (heads, *[getattr(config, "num_key_value_heads", None) or heads] * 2)
    )
    try:
        mask, options = block_mask(layout, device), {"FORCE_USE_FLEX_ATTENTION": True}
        with torch.enable_grad():  # The first pass may be one that only scores.
            found, _ = ALL_ATTENTION_FUNCTIONS[FLEX](torch.nn.Module(), query, key, value, mask, kernel_options=options)
            torch.autograd.grad(found.sum(), (query, key, value))
    except torch.OutOfMemoryError:
        raise
    except Exception as fault:  # A compiler may fail in any way; the reason is logged.
        return f"{type(fault).__name__}: {fault}".splitlines()[0]
    return ""


def for_all(choices: Sequence[Choice]) -> Choice:
    """The choice that every process can take, of the choices of all: the last one tried. With different ones they would wait for each
    other, or round differently."""
    order: tuple[str | None, ...] = (*WAYS, None)
    return max(choices, key=lambda choice: (order.index(choice.implementation), not choice.fused))


def _difference(
    model: torch.nn.Module, implementation: str, device: torch.device, tolerance: float, fused: bool = False
) -> str:
    """The reason why an implementation cannot be used; empty if it agrees."""
    vocabulary = model_config(model).get_text_config().vocab_size
    try:  # All of it on every process, since those that share a model's weights compute together.
        together = _scores(model, _rows(vocabulary), device, implementation, fused)
        alone = _scores(model, _rows(vocabulary, False), device)
        with attending(model, "eager"):
            plain = _scores(model, _rows(vocabulary, False), device)
    except torch.OutOfMemoryError:
        raise
    except Exception as fault:  # A model may fail in any way on inputs that it does not expect; the reason is logged.
        return f"{type(fault).__name__}: {fault}".splitlines()[0]
    apart, rounding = (float((other - alone).abs().mean()) for other in (together, plain))
    if apart <= max(tolerance, ROUNDING * rounding):
        return ""
    return f"log-probabilities differ by {apart:.2g}"


@torch.no_grad()
def _scores(
    model: torch.nn.Module,
    rows: ModelRows,
    device: torch.device,
    implementation: str = SDPA_PACKED,
    fused: bool = False,
) -> torch.Tensor:
    """(samples, T) log-probabilities without dropout."""
    was_training = model.training
    model.eval()
    try:
        rows = rows.to(device)
        with packed_layers(model) if fused else nullcontext():
            return rows.placed(score(model, rows, 1.0, implementation=implementation, fused=fused).logprobs)
    finally:
        model.train(was_training)


def _rows(vocabulary: int, together: bool = True) -> ModelRows:
    """Two groups of arbitrary tokens, all different if the vocabulary is large enough."""
    prompts: list[Sequence[int]] = []
    completions: list[Sequence[int]] = []
    owners, drawn = [], iter(range(7, 10_000, 13))
    for group, (prompt, lengths) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        head = [next(drawn) % vocabulary for _ in range(prompt)]
        for length in lengths:
            prompts.append(head)
            completions.append([next(drawn) % vocabulary for _ in range(length)])
            owners.append(group)
    width = max(map(len, completions))
    return packed(prompts, completions, owners, width) if together else row_by_row(prompts, completions, width)
