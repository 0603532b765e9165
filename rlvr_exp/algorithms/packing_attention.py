"""Attention over packed rows: a completion sees its group's prompt and itself, and nothing beyond is computed.

Two implementations behind the attention interface of Transformers: SDPA_PACKED, group by group through PyTorch's
scaled-dot-product attention on any device, and FlexAttention with a block mask (Dong et al. 2024, arXiv 2412.05496) on GPUs.
`attending` switches a model to either for the length of a pass; the layout of the row is passed as an argument of the
model, `packed_layout`, or as the block mask in place of the attention mask.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from rlvr_exp.algorithms.packing import PackedLayout, owners_and_segments

SDPA_PACKED, FLEX = "sdpa_packed", "flex_attention"
UNKNOWN = ("softcap", "s_aux", "position_bias")
"""Arguments of attention layers that change scores in ways that SDPA_PACKED does not compute."""


class CannotPack(Exception):
    """The model's attention needs something that a packed row cannot provide; the message names it."""


def sdpa_packed(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    packed_layout: PackedLayout | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """(1, heads, width, d) queries, keys and values -> (1, width, heads, d).

    Raises:
        CannotPack: there is no layout, a window is shorter than the longest prompt and completion, or scores are changed.
    """
    if packed_layout is None or attention_mask is not None:
        raise CannotPack("its layers do not receive the layout of the groups")
    if sliding_window is not None and sliding_window < packed_layout.longest:
        raise CannotPack(f"its attention slides over {sliding_window} tokens")
    if changed := [name for name in UNKNOWN if others.get(name) is not None]:
        raise CannotPack(f"its attention has {', '.join(changed)}")
    repeats = query.shape[1] // key.shape[1]
    masks = segment_masks(packed_layout, query.dtype, query.device)
    widths = packed_layout.widths
    parts = zip(query.split(widths, 2), key.split(widths, 2), value.split(widths, 2), strict=True)
    outputs = []
    for (queries, *held), prefix, mask in zip(parts, packed_layout.prefixes, masks, strict=True):
        own = [part.repeat_interleave(repeats, 1) for part in held]
        if mask is None:
            outputs.append(scaled_dot_product_attention(queries, *own, None, dropout, True, scale=scaling))
            continue
        if prefix:
            seen = [part[:, :, :prefix] for part in (queries, *own)]
            outputs.append(scaled_dot_product_attention(*seen, None, dropout, True, scale=scaling))
        outputs.append(scaled_dot_product_attention(queries[:, :, prefix:], *own, mask, dropout, scale=scaling))
    return torch.cat(outputs, dim=2).transpose(1, 2), None


@lru_cache(maxsize=1)
def segment_masks(layout: PackedLayout, dtype: torch.dtype, device: torch.device) -> list[torch.Tensor | None]:
    """For each group the mask of its segments; None for a single one, which with its prefix is causal as it stands. Cached
    only for the layers of one pass: long masks are large."""
    groups = zip(layout.prefixes, layout.segments, strict=True)
    return [segment_mask(prefix, segments, dtype, device) if len(segments) > 1 else None for prefix, segments in groups]


def segment_mask(prefix: int, segments: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """(1, 1, sum of segments, prefix + sum of segments), additive: each segment sees the prefix and itself, causally."""
    owner = torch.repeat_interleave(torch.arange(len(segments)), torch.tensor(segments)).to(device)
    seen = torch.ones((len(owner), prefix + len(owner)), dtype=torch.bool, device=device)
    seen[:, prefix:] = (owner[:, None] == owner[None, :]).tril()
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, -torch.inf)[None, None]


def block_mask(layout: PackedLayout, device: torch.device) -> BlockMask:
    """The same for FlexAttention: blocks that no token sees are not computed."""
    _many_shapes()
    group, segment = (one.to(device) for one in owners_and_segments(layout))

    def seen(batch, head, query, key):
        shared = (segment[key] == -1) | (segment[key] == segment[query])
        return (query >= key) & (group[query] == group[key]) & shared

    # Compiled, so that GPUs never hold the mask of every pair of tokens.
    return create_block_mask(seen, None, None, len(group), len(group), device=device, _compile=device.type == "cuda")


def _many_shapes() -> None:
    """More compiled variants than torch keeps: short and long rows, with and without gradients and autocast, frozen layers and
    others. Beyond its limit of 8 it computes every pair of tokens. They are compiled as they are, not cut into the buckets
    of DistributedDataParallel, which older torch cannot."""
    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    torch._dynamo.config.optimize_ddp = False


@contextmanager
def attending(model: torch.nn.Module, implementation: str) -> Iterator[None]:
    """Inside the block every language model within `model` attends by `implementation`; afterwards as before.

    The block must include the backward pass: gradient checkpointing recomputes layers there.
    """
    configs = {id(part.config): part.config for part in model.modules() if isinstance(part, PreTrainedModel)}
    before = {name: config._attn_implementation for name, config in configs.items()}
    try:
        for config in configs.values():
            config._attn_implementation = implementation
        yield
    finally:
        for name, config in configs.items():
            config._attn_implementation = before[name]


AttentionInterface.register(SDPA_PACKED, sdpa_packed)
