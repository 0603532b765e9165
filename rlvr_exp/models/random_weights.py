"""Models with random weights: of a known shape for measurements, or of one's own shape (`model.scratch`) to train from scratch.

Nothing is loaded and nothing is downloaded. The models are Transformers' classes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)

from rlvr_exp.config.architecture import BLOOM, GPT2, SMOLLM3, Architecture, Shape


def hugging_face(shape: Architecture, positions: int) -> PreTrainedConfig:
    """Transformers' configuration of the same shape, for up to `positions` tokens."""
    kind = Qwen3Config if shape.qk_norm else Qwen2Config if shape.attention_bias else LlamaConfig
    more = {"vocab_size": shape.vocabulary, "tie_word_embeddings": shape.tied_embeddings}
    return llama_family(kind, shape, positions, **more)


def llama_family(
    kind: type[PreTrainedConfig], shape: Architecture | Shape, positions: int, **more: Any
) -> PreTrainedConfig:
    """A configuration of a class that names its numbers as Llama does."""
    return kind(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=positions,
        **more,
    )


def random_network(
    shape: Architecture, positions: int, dtype: torch.dtype, device: str, quantization: str = ""
) -> PreTrainedModel:
    """The model on its device. `quantization`: "8bit", "4bit" or "" for none."""
    with torch.device(device):
        network = AutoModelForCausalLM.from_config(hugging_face(shape, positions), dtype=dtype)
    return quantized(network, quantization) if quantization else network


def quantized(network: PreTrainedModel, bits: str) -> PreTrainedModel:
    """Matrices of layers replaced by bitsandbytes' of the same random values, one at a time."""
    from bitsandbytes.nn import Int8Params, Linear4bit, Linear8bitLt, Params4bit

    for name, module in list(network.named_modules()):
        if not isinstance(module, nn.Linear) or name == "lm_head":
            continue
        bias, weight = module.bias is not None, module.weight.data
        if bits == "4bit":
            new = Linear4bit(module.in_features, module.out_features, bias, weight.dtype, True, "nf4", device="meta")
            new.weight = Params4bit(weight, requires_grad=False, quant_type="nf4", compress_statistics=True)
        else:
            new = Linear8bitLt(module.in_features, module.out_features, bias, has_fp16_weights=False, device="meta")
            new.weight = Int8Params(weight, requires_grad=False, has_fp16_weights=False)
        new.bias = module.bias
        new.weight = new.weight.to(weight.device)
        network.set_submodule(name, new)
    return network


def _gpt2(shape: Shape) -> PreTrainedConfig:
    without_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}  # As the other classes.
    widths = {"n_embd": shape.hidden, "n_inner": shape.intermediate, "n_positions": shape.context}
    return GPT2Config(**widths, n_layer=shape.layers, n_head=shape.heads, **without_dropout)


def _bloom(shape: Shape) -> PreTrainedConfig:
    """ALiBi has no longest length; the context is kept, since it says how long a prompt may be."""
    numbers = {"hidden_size": shape.hidden, "n_layer": shape.layers, "n_head": shape.heads}
    return BloomConfig(**numbers, max_position_embeddings=shape.context)


def _llama(shape: Shape) -> PreTrainedConfig:
    return llama_family(LlamaConfig, shape, shape.context, rope_theta=10_000.0)


def _qwen3(shape: Shape) -> PreTrainedConfig:
    window = (
        {"use_sliding_window": True, "sliding_window": shape.window, "max_window_layers": 0} if shape.window else {}
    )
    return llama_family(Qwen3Config, shape, shape.context, rope_theta=10_000.0, **window)


def _smollm3(shape: Shape) -> PreTrainedConfig:
    return llama_family(SmolLM3Config, shape, shape.context, no_rope_layers=[0] * shape.layers)


BUILDERS: Mapping[str, Callable[[Shape], PreTrainedConfig]] = {
    "qwen3": _qwen3,
    "llama": _llama,
    GPT2: _gpt2,
    BLOOM: _bloom,
    SMOLLM3: _smollm3,
}


def scratch_config(shape: Shape, vocabulary: int, pad_id: int, end_id: int) -> PreTrainedConfig:
    """Transformers' configuration of a shape without problems.

    Args:
        vocabulary: rows of the embedding.
    """
    config = BUILDERS[shape.kind](shape)
    config.vocab_size, config.tie_word_embeddings = vocabulary, shape.tied
    config.pad_token_id, config.eos_token_id, config.bos_token_id = pad_id, end_id, None
    return config
