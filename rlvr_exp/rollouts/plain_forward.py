"""The forward pass of a plain decoder (Llama, Mistral, Qwen2, Qwen3) on CPU in float32, for sampling.

A small model's decoding step is mostly Python and small operations between products. Here projections that read the same
input are one product with the norm's weights in it, residuals are added by oneDNN, and positions are turned as complex
numbers; the result is the model's own up to rounding, which rlvr_exp.rollouts.shared_prefix_decoder tries.
Every operation acts on single tokens but for the attention, which is the cache's. The weights are copied when a batch
begins: they change with every update. LoRA adapters are added to these copies, so that they cost nothing for each token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from peft.tuners.lora import LoraLayer
from torch import nn
from torch.nn.functional import pad, rms_norm
from transformers import PreTrainedModel

from rlvr_exp.models.adapters import adds_products, applied_adapters
from rlvr_exp.models.onednn_linear import PackedLinear, packable, padded_rows
from rlvr_exp.rollouts.shared_prefix_cache import SharedPrefixCache

PLAIN = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
Rows = tuple[torch.Tensor, torch.Tensor | None]
"""Weights (outputs, inputs) and biases of a projection."""
ROPES = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings whose angles depend on the position alone."""


def plain_forward(model: PreTrainedModel, cache: SharedPrefixCache) -> "PlainForward | None":
    """None if the model is not plain, or if something is attached to its modules that has to be called."""
    return PlainForward(model, cache) if is_plain(model) else None


def is_plain(model: PreTrainedModel) -> bool:
    """Whether it is one of PLAIN on CPU in float32, as the library builds it: its own norms, PyTorch's own linear layers, with or
    without LoRA, and embedding, nothing attached to a module and no method of one replaced."""
    config = model.config
    if type(model).__name__ not in PLAIN or not type(model).__module__.startswith("transformers.models."):
        return False
    modules = list(model.modules())
    changed = any(one._forward_hooks or one._forward_pre_hooks or "forward" in vars(one) for one in modules)
    usual = (
        config.hidden_act == "silu" and rope_type(model) in ROPES and type(model.get_input_embeddings()) is nn.Embedding
    )
    norms = all(type(one).__module__ == type(model).__module__ for one in _norms(model))
    return usual and norms and not changed and all(map(_mergeable, _projections(model)))


def rope_type(model: PreTrainedModel) -> str:
    """Of the rotary embedding; "default" where the model has none."""
    return (getattr(model.config, "rope_parameters", None) or {}).get("rope_type", "default")


def _norms(model: PreTrainedModel) -> list[nn.Module]:
    names = ("input_layernorm", "post_attention_layernorm")
    found = [getattr(layer, name) for layer in model.model.layers for name in names]
    heads = [getattr(layer.self_attn, name, None) for layer in model.model.layers for name in ("q_norm", "k_norm")]
    return [model.model.norm, *found, *(one for one in heads if one is not None)]


def _projections(model: PreTrainedModel) -> list[nn.Module]:
    names = [(layer.self_attn, "qkvo") for layer in model.model.layers]
    found = [getattr(attention, f"{name}_proj") for attention, each in names for name in each]
    found += [getattr(layer.mlp, f"{name}_proj") for layer in model.model.layers for name in ("gate", "up", "down")]
    return [*found, model.lm_head]


def _mergeable(module: nn.Module) -> bool:
    """Whether it is PyTorch's own linear layer, or one whose adapters only add a product of two matrices to its weights."""
    if not isinstance(module, LoraLayer):
        return packable(module)
    parts = [part[name].weight for name in applied_adapters(module) for part in (module.lora_A, module.lora_B)]
    precise = all(type(one) is nn.Parameter and one.dtype == torch.float32 for one in parts)
    return precise and adds_products(module) and packable(module.get_base_layer())


def _merged(module: nn.Module) -> Rows:
    """Weights and biases of a projection with its adapters."""
    weight = module.weight
    for name in applied_adapters(module):
        weight = weight + module.get_delta_weight(name)
    return weight, module.bias


@dataclass(frozen=True)
class _Layer:
    inputs: PackedLinear
    """Queries, keys and values, in this order."""
    scale: torch.Tensor | None
    """(query and key heads, dimension) weights of their norms; None: they have none."""
    attended: PackedLinear
    gate: PackedLinear
    widened: PackedLinear
    """The values that the gate scales."""
    narrowed: PackedLinear


class PlainForward:
    """Logits (tokens, vocabulary) of tokens in one row, each with its position; (wanted, vocabulary) of the tokens `wanted` alone.
    `whole`: the row holds whole prompts, and wanted are their last tokens."""

    @torch.no_grad()
    def __init__(self, model: PreTrainedModel, cache: SharedPrefixCache):
        config, body = model.config, model.model
        self._cache, self._eps = cache, config.rms_norm_eps
        self._heads, self._shared_heads = config.num_attention_heads, config.num_key_value_heads
        self._size = body.layers[0].self_attn.head_dim
        self._pairs = torch.arange(self._size).view(2, -1).t().reshape(-1)
        """The order in which the two dimensions that are turned together stand side by side."""
        self._embedding = body.embed_tokens.weight
        self._layers = [self._layer(one) for one in body.layers]
        self._head = PackedLinear(*_after_norm(_merged(model.lm_head), body.norm))
        cos, sin = body.rotary_emb(self._embedding, torch.arange(cache.longest)[None])
        self._turns = torch.complex(cos[0, :, : self._size // 2], sin[0, :, : self._size // 2])

    def __call__(
        self, tokens: torch.Tensor, positions: torch.Tensor, wanted: torch.Tensor | None = None, whole: bool = True
    ) -> torch.Tensor:
        count, rows = len(tokens), padded_rows(len(tokens))
        tokens, positions = _filled(tokens, rows), _filled(positions, rows)
        x, turns = self._embedding[tokens], self._turns[positions][:, None]
        for number, layer in enumerate(self._layers):
            query, key, value = self._inputs(layer, self._normed(x), turns, count)
            if wanted is not None and whole and layer is self._layers[-1]:
                # Of the other tokens the keys and values are needed, and nothing else.
                output = self._cache.attend_last(number, query[wanted], key, value)
                x = x[_filled(wanted, padded_rows(len(wanted)))]
            else:
                output = self._cache.attend(number, query, key, value, 1.0)
            x = layer.attended.plus(x, _filled(output.flatten(1), len(x)))
            normed = self._normed(x)
            x = layer.narrowed.plus(x, layer.widened.gated(layer.gate.silu(normed), normed))
        if wanted is not None and not whole:
            x = x[_filled(wanted, padded_rows(len(wanted)))]
        return self._head(self._normed(x))[: count if wanted is None else len(wanted)]

    def _inputs(
        self, layer: _Layer, x: torch.Tensor, turns: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values (count, heads, dimension)."""
        turned = self._heads + self._shared_heads
        x = layer.inputs(x).view(len(x), turned + self._shared_heads, self._size)
        both, values = x[:, :turned], x[:count, turned:]
        if layer.scale is not None:
            both = rms_norm(both, (self._size,), None, self._eps).mul_(layer.scale)
        pairs = torch.view_as_complex(both.unflatten(-1, (-1, 2)))
        both = torch.view_as_real(pairs * turns).flatten(-2)[:count]
        return both[:, : self._heads], both[:, self._heads :], values

    def _normed(self, x: torch.Tensor) -> torch.Tensor:
        """Its weights are part of the product that follows."""
        return rms_norm(x, (x.shape[-1],), None, self._eps)

    def _layer(self, layer: nn.Module) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        inputs, scale = self._projection(attention)
        gate, up = (_after_norm(_merged(one), layer.post_attention_layernorm) for one in (mlp.gate_proj, mlp.up_proj))
        return _Layer(
            PackedLinear(*_after_norm(inputs, layer.input_layernorm)),
            scale,
            PackedLinear(*_merged(attention.o_proj)),
            PackedLinear(*gate),
            PackedLinear(*up),
            PackedLinear(*_merged(mlp.down_proj)),
        )

    def _projection(self, attention: nn.Module) -> tuple[Rows, torch.Tensor | None]:
        """The joint projection, with the scale of the attention's scores in the queries; and the `scale` of a layer."""
        query, key, value = map(_merged, (attention.q_proj, attention.k_proj, attention.v_proj))
        query, key = ((self._paired(weight), self._paired(bias)) for weight, bias in (query, key))
        if not hasattr(attention, "q_norm"):
            weight, bias = (None if rows is None else rows * attention.scaling for rows in query)
            return _joined([(weight, bias), key, value]), None
        of_query, of_key = (
            attention.q_norm.weight[self._pairs] * attention.scaling,
            attention.k_norm.weight[self._pairs],
        )
        scale = torch.cat([of_query.expand(self._heads, -1), of_key.expand(self._shared_heads, -1)])
        return _joined([query, key, value]), scale

    def _paired(self, rows: torch.Tensor | None) -> torch.Tensor | None:
        """The rows of a projection with each head's in the order of `_pairs`."""
        return None if rows is None else rows.unflatten(0, (-1, self._size))[:, self._pairs].flatten(0, 1)


def _after_norm(rows: Rows, norm: nn.Module) -> Rows:
    """A projection with the weights of the norm before it."""
    weight, bias = rows
    return weight * norm.weight, bias


def _joined(parts: Sequence[Rows]) -> Rows:
    """One projection in place of several that read the same input."""
    biases = [torch.zeros(len(weight)) if bias is None else bias for weight, bias in parts]
    some = any(bias is not None for _, bias in parts)
    return torch.cat([weight for weight, _ in parts]), torch.cat(biases) if some else None


def _filled(x: torch.Tensor, rows: int) -> torch.Tensor:
    """x with rows of zeros up to a number."""
    missing = rows - len(x)
    return pad(x, (0, 0) * (x.dim() - 1) + (0, missing)) if missing else x
