"""Attention over packed rows: a completion sees its group's prompt and itself, and nothing beyond is computed.

Two implementations behind the attention interface of Transformers: SDPA_PACKED, group by group through PyTorch's
scaled-dot-product attention on any device, and FlexAttention with a block mask (Dong et al. 2024, arXiv 2412.05496) on GPUs.
On CPUs in float32 SDPA_PACKED calls PyTorch's flash kernel (`Grouped`): the first segment continues its prefix, and the others are a
batch, each with a copy of the prefix, so that no score between two segments is computed. Short segments after
a long prefix share it under a mask instead.
`attending` switches a model to either for the length of a pass; the layout of the row is passed as an argument of the
model, `packed_layout`, or as the block mask in place of the attention mask.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from rlvr_exp.algorithms.packing import PackedLayout, owners_and_segments

SDPA_PACKED, FLEX = "sdpa_packed", "flex_attention"
UNKNOWN = ("softcap", "s_aux", "position_bias")
"""Arguments of attention layers that change scores in ways that SDPA_PACKED does not compute."""

_SMALL = 256
"""Tokens of a batch, padding included, that cost little more than a call."""


_WORTH = 4 / 3
"""Scores between segments that cost less than a copy of the prefix for each segment, as a share of the others."""


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
    if query.device.type == "cpu" and query.dtype == torch.float32 and not dropout:
        heads = [part[0].transpose(0, 1) for part in (query, key, value)]
        return Grouped.apply(*heads, packed_layout, scaling)[None], None
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


@dataclass(frozen=True)
class _Batch:
    """Neighbouring segments of a group that are attended to in one call: (segments, longest) queries, each padded at its end,
    with the group's prefix and themselves as keys."""

    first: int
    """The row of the group's first token."""
    prefix: int
    start: int
    """The row of the first segment's first token."""
    lengths: tuple[int, ...]
    real: torch.Tensor | None
    """(segments, longest) booleans: no padding; None where all segments are equally long."""
    mask: torch.Tensor | None
    """(longest, prefix + longest) additive; None: the prefix belongs to the queries, and all of it is causal. With a mask that
    keeps several segments apart they count as one."""

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + sum(self.lengths))

    def queries(self, x: torch.Tensor) -> torch.Tensor:
        """(width, heads, d) -> (segments, heads, longest, d)"""
        return self._apart(x).transpose(1, 2)

    def keys(self, x: torch.Tensor) -> torch.Tensor:
        """(width, heads, d) -> (segments, heads, prefix + longest, d)"""
        if self.mask is None:
            return self.queries(x)
        prefix = x[self.first : self.first + self.prefix].expand(len(self.lengths), -1, -1, -1)
        return torch.cat([prefix, self._apart(x)], 1).transpose(1, 2)

    def store(self, x: torch.Tensor, found: torch.Tensor) -> None:
        """Write what was found of the queries to their rows of x."""
        x[self.rows] = self._together(found.transpose(1, 2))

    def add(self, x: torch.Tensor, found: torch.Tensor) -> None:
        """Add what was found of the keys to their rows of x."""
        found = found.transpose(1, 2)
        if self.mask is not None:
            x[self.first : self.first + self.prefix] += found[:, : self.prefix].sum(0)
            found = found[:, self.prefix :]
        x[self.rows] += self._together(found)

    def _apart(self, x: torch.Tensor) -> torch.Tensor:
        """(width, ...) -> (segments, longest, ...)"""
        if self.real is None:
            return x[self.rows].unflatten(0, (len(self.lengths), -1))
        return x.new_zeros(*self.real.shape, *x.shape[1:]).index_put_((self.real,), x[self.rows])

    def _together(self, found: torch.Tensor) -> torch.Tensor:
        """(segments, longest, ...) -> (rows, ...)"""
        return found.flatten(0, 1) if self.real is None else found[self.real]


class Grouped(torch.autograd.Function):
    """(width, heads, d) queries, keys and values of a packed row -> (width, heads, d), on CPU without dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        layout: PackedLayout,
        scaling: float | None,
    ) -> torch.Tensor:
        found, sums = attended(query, key, value, layout, scaling)
        ctx.layout, ctx.scaling = layout, scaling
        ctx.save_for_backward(query, key, value, found, *sums)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        query, key, value, found, *sums = ctx.saved_tensors
        grads = [torch.empty(one.shape, dtype=one.dtype) for one in (query, key, value)]
        attended_backward(grad, (query, key, value), found, sums, ctx.layout, ctx.scaling, grads)
        return *grads, None, None


def attended(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, layout: PackedLayout, scaling: float | None
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """(width, heads, d), and the log-sums of exponentials that its gradient needs, for each call of the kernel."""
    found, sums = torch.empty(query.shape, dtype=query.dtype), []
    for batch in _batches(layout, query.dtype):
        given = batch.queries(query), batch.keys(key), batch.keys(value)
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        own, total = kernel(*given, 0.0, batch.mask is None, attn_mask=batch.mask, scale=scaling)
        batch.store(found, own)
        sums.append(total)
    return found, sums


def attended_backward(
    grad: torch.Tensor,
    given: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    found: torch.Tensor,
    sums: list[torch.Tensor],
    layout: PackedLayout,
    scaling: float | None,
    grads: list[torch.Tensor],
) -> None:
    """Write the gradients of the queries, keys and values given into `grads`."""
    for one in grads[1:]:
        one.zero_()
    for batch, total in zip(_batches(layout, grad.dtype), sums, strict=True):
        parts = batch.queries(given[0]), batch.keys(given[1]), batch.keys(given[2])
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        arguments = (batch.queries(grad), *parts, batch.queries(found), total, 0.0, batch.mask is None)
        own = kernel(*arguments, attn_mask=batch.mask, scale=scaling)
        batch.store(grads[0], own[0])
        for one, part in zip(grads[1:], own[1:], strict=True):
            batch.add(one, part)


@lru_cache(maxsize=1)
def _batches(layout: PackedLayout, dtype: torch.dtype) -> list[_Batch]:
    """The calls of the kernel. Cached only for the layers of one pass: long masks are large."""
    found, first = [], 0
    masks: dict[tuple[int, int], torch.Tensor] = {}
    for prefix, lengths in zip(layout.prefixes, layout.segments, strict=True):
        found.append(_Batch(first, prefix, first, (prefix + lengths[0],), None, None))
        start, others = first + prefix + lengths[0], sum(lengths[1:])
        parts = list(_alike(lengths[1:]))
        scores = sum(len(part) * max(part) * (prefix + max(part)) for part in parts)
        if parts and others * (prefix + others) <= _WORTH * scores:
            mask = segment_mask(prefix, lengths[1:], dtype, torch.device("cpu"))[0, 0]
            found.append(_Batch(first, prefix, start, (others,), None, mask))
            start, parts = start + others, []
        for part in parts:
            longest = max(part)
            if (prefix, longest) not in masks:
                seen = torch.ones((longest, prefix + longest), dtype=torch.bool).tril(prefix)
                masks[prefix, longest] = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)
            real = None if min(part) == longest else torch.arange(longest) < torch.tensor(part)[:, None]
            found.append(_Batch(first, prefix, start, part, real, masks[prefix, longest]))
            start += sum(part)
        first = start
    return found


def _alike(lengths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Neighbours together for as long as less than a third of a batch is padding, or the batch is small."""
    begun = 0
    for end in range(1, len(lengths) + 1):
        part = lengths[begun : end + 1]
        if end == len(lengths) or max(part) * len(part) > max(_SMALL, 1.5 * sum(part)):
            yield lengths[begun:end]
            begun = end


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
