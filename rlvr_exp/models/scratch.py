"""Models built with random weights in a shape of one's own (`model.scratch`), as Transformers' classes."""

from collections.abc import Callable, Mapping

from transformers import BloomConfig, GPT2Config, LlamaConfig, PreTrainedConfig, Qwen3Config, SmolLM3Config

from rlvr_exp.config.scratch import BLOOM, GPT2, SMOLLM3, Shape
from rlvr_exp.models.random_weights import llama_family


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
