"""Packed rows: the tokens of a micro-batch as the model's inputs, and the attention over them.

A packed row is, group after group, `[prompt without its last token, then for each completion: the last prompt token,
c1 .. c(T-1)]`: the prompt is computed once for all completions that share it, and nothing is padded. Position ids restart
at the prompt's end in every segment, and the attention lets a segment see its group's prompt and itself, so each
completion's log-probabilities equal those of its own row. Repeating the last prompt token gives every completion its own
position to be predicted from. The alternative is one row per completion (`row_by_row`). Knows nothing of models or losses.

Two implementations are behind the attention interface of Transformers: SDPA_PACKED, group by group through PyTorch's
scaled-dot-product attention on any device, and FlexAttention with a block mask (Dong et al. 2024, arXiv 2412.05496) on GPUs.
On CPUs in float32 SDPA_PACKED calls PyTorch's flash kernel (`Grouped`): the first segment continues its prefix, and the
others are a batch, each with a copy of the prefix, so that no score between two segments is computed. Short segments after
a long prefix share it under a mask instead. `attending` switches a model to either for the length of a pass; the layout of
the row is passed as an argument of the model, `packed_layout`, or as the block mask in place of the attention mask.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

IGNORED = -100
"""Label of a position that predicts nothing."""
FILLING = 64
"""The most tokens of a segment that only fills a row up: attention grows with their square."""


@dataclass(frozen=True)
class PackedLayout:
    """The groups of the tokens of a packed row: for each group the length of its prefix, and of each of its segments."""

    prefixes: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt with a completion: how far back any attention of the row reaches."""
        return max(prefix + max(lengths) for prefix, lengths in zip(self.prefixes, self.segments, strict=True))

    @property
    def widths(self) -> list[int]:
        """Tokens of each group."""
        return [prefix + sum(lengths) for prefix, lengths in zip(self.prefixes, self.segments, strict=True)]


@dataclass(frozen=True)
class ModelRows:
    """The inputs of a forward pass, and the positions of its scores in (samples, T), as in the loss."""

    input_ids: torch.Tensor
    """(rows, width)"""
    position_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    """(rows, width), 1 for tokens; None: the layout decides the visible tokens."""
    layout: PackedLayout | None
    """The layout of a packed row; None for one row per completion."""
    scored: torch.Tensor
    """(m,) positions that predict a token, counted through all rows."""
    labels: torch.Tensor
    """(m,) the tokens predicted"""
    places: torch.Tensor
    """(m,) the place of each of them in (samples, T), counted through all rows"""
    shape: tuple[int, int]
    """(samples, T)"""
    scored_on_host: torch.Tensor | None = None
    """`scored` before it was moved to a device"""

    def to(self, device: torch.device) -> "ModelRows":
        values = {name: value for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        moved = {name: value.to(device, non_blocking=True) for name, value in values.items()}
        host = self.scored if self.scored_on_host is None else self.scored_on_host
        return replace(self, **moved | {"scored_on_host": host})

    def of(self, samples: Sequence[int], count: int) -> "ModelRows":
        """The same rows as a subset `samples` of `count` samples."""
        width = self.shape[1]
        row = torch.tensor(samples, device=self.places.device)[self.places // width]
        return replace(self, places=row * width + self.places % width, shape=(count, width))

    def after(self, given: Sequence[int]) -> "ModelRows":
        """The same rows without scores of the first `given` tokens of each sample: its other tokens begin the sample."""
        skipped = torch.tensor(given)[self.places // self.shape[1]]
        kept = self.places % self.shape[1] >= skipped
        return replace(self, scored=self.scored[kept], labels=self.labels[kept], places=(self.places - skipped)[kept])

    def shifted_labels(self) -> torch.Tensor:
        """(rows, width): the token that each position predicts, IGNORED if it predicts none."""
        labels = torch.full_like(self.input_ids, IGNORED).flatten()
        return labels.index_copy(0, self.scored, self.labels).view(self.input_ids.shape)

    def placed(self, values: torch.Tensor) -> torch.Tensor:
        """(m,) values of the predictions -> (samples, T), zero if nothing is predicted."""
        return values.new_zeros(self.shape[0] * self.shape[1]).index_put((self.places,), values).view(self.shape)

    def unpacked(self, values: torch.Tensor) -> torch.Tensor:
        """(rows, width) values of all positions -> (samples, T), each token's value at the position that predicts it."""
        return self.placed(values.flatten()[self.scored])

    def chosen(self, values: torch.Tensor) -> torch.Tensor:
        """(samples, T, ...) -> (m, ...): the values at each prediction."""
        return values.flatten(0, 1)[self.places]


def packed(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    owners: Sequence[int],
    width: int,
    fed: Sequence[Sequence[int]] | None = None,
) -> ModelRows:
    """All samples in one row.

    Args:
        prompts, completions: token ids of each sample, unpadded; those of a group are neighbours.
        owners: the group of each sample.
        width: T, the columns of (samples, T).
        fed: the tokens that the model is given in place of the completions, which it predicts; None: these.

    Raises:
        ValueError: samples of a group differ in their prompt.
    """
    fed = completions if fed is None else fed
    ids, positions, scored, labels, places = (list[int]() for _ in range(5))
    prefixes, segments = [], []
    for _, members in groupby(range(len(owners)), key=owners.__getitem__):
        rows = list(members)
        prompt = prompts[rows[0]]
        if any(prompts[row] != prompt for row in rows):
            raise ValueError(
                f"packed: samples of group {owners[rows[0]]} differ in their prompt; groups must be contiguous"
            )
        ids += prompt[:-1]
        positions += range(len(prompt) - 1)
        for row in rows:
            completion = completions[row]
            scored += range(len(ids), len(ids) + len(completion))
            ids += [prompt[-1], *fed[row][:-1]]
            positions += range(len(prompt) - 1, len(prompt) - 1 + len(completion))
            labels += completion
            places += range(row * width, row * width + len(completion))
        prefixes.append(len(prompt) - 1)
        segments.append(tuple(len(completions[row]) for row in rows))
    layout = PackedLayout(tuple(prefixes), tuple(segments))
    inputs, tensors = (torch.tensor([ids]), torch.tensor([positions])), map(torch.tensor, (scored, labels, places))
    return ModelRows(*inputs, None, layout, *tensors, (len(owners), width))  # type: ignore[call-arg]


def row_by_row(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    width: int,
    fed: Sequence[Sequence[int]] | None = None,
) -> ModelRows:
    """One row per sample, padded on the right, which no causal model can see. Arguments as of `packed`."""
    rows = [[*prompt, *given] for prompt, given in zip(prompts, completions if fed is None else fed, strict=True)]
    longest = max(len(row) for row in rows)
    starts = [index * longest + len(prompt) - 1 for index, prompt in enumerate(prompts)]
    scored = [
        start + step for start, completion in zip(starts, completions, strict=True) for step in range(len(completion))
    ]
    places = [row * width + step for row, completion in enumerate(completions) for step in range(len(completion))]
    labels = [token for completion in completions for token in completion]
    return ModelRows(
        input_ids=torch.tensor([row + row[:1] * (longest - len(row)) for row in rows]),
        position_ids=torch.arange(longest).expand(len(rows), -1),
        attention_mask=torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows]),
        layout=None,
        scored=torch.tensor(scored),
        labels=torch.tensor(labels),
        places=torch.tensor(places),
        shape=(len(rows), width),
    )


def packed_examples(examples: Sequence[tuple[Sequence[int], Sequence[int]]]) -> ModelRows:
    """Token ids and labels of unrelated examples in one row, each a segment that sees itself alone.

    A label is the token at its own place, or IGNORED; the last token of an example predicts nothing and is left out.
    """
    ids, positions, scored, targets = (list[int]() for _ in range(4))
    for tokens, labels in examples:
        start = len(ids)
        ids += tokens[:-1]
        positions += range(len(tokens) - 1)
        learned = [place for place in range(1, len(labels)) if labels[place] != IGNORED]
        scored += [start + place - 1 for place in learned]
        targets += [labels[place] for place in learned]
    lengths = tuple((len(tokens) - 1,) for tokens, _ in examples)
    tensors = (torch.tensor(values, dtype=torch.long) for values in (scored, targets, range(len(targets))))
    layout = PackedLayout((0,) * len(lengths), lengths)
    return ModelRows(torch.tensor([ids]), torch.tensor([positions]), None, layout, *tensors, (1, len(targets)))  # type: ignore[call-arg]


def filled(rows: ModelRows, width: int) -> ModelRows:
    """A packed row with segments of zeros at its end, from which nothing is learned, up to `width` tokens."""
    layout, missing = rows.layout, width - rows.input_ids.shape[1]
    if layout is None or missing <= 0:
        return rows
    longest = min(FILLING, layout.longest)
    lengths = [longest] * (missing // longest) + [missing % longest] * (missing % longest > 0)
    device = rows.input_ids.device
    return replace(
        rows,
        input_ids=torch.cat([rows.input_ids, torch.zeros((1, missing), dtype=torch.long, device=device)], 1),
        position_ids=torch.cat([rows.position_ids, torch.arange(missing, device=device)[None] % longest], 1),
        layout=PackedLayout((*layout.prefixes, *[0] * len(lengths)), (*layout.segments, *((one,) for one in lengths))),
    )


def owners_and_segments(layout: PackedLayout) -> tuple[torch.Tensor, torch.Tensor]:
    """(width,) the group of each token of a packed row, and its segment counted through the row; -1 in a prefix."""
    groups, segments, count = [], [], 0
    for number, (prefix, lengths) in enumerate(zip(layout.prefixes, layout.segments, strict=True)):
        groups += [number] * (prefix + sum(lengths))
        segments += [-1] * prefix
        for length in lengths:
            segments += [count] * length
            count += 1
    return torch.tensor(groups), torch.tensor(segments)


def starts(lengths: Sequence[int]) -> list[int]:
    """The start of each of consecutive segments of these lengths."""
    return [0, *accumulate(lengths)][:-1]


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
    attend: Any = scaled_dot_product_attention
    for (queries, *held), prefix, mask in zip(parts, packed_layout.prefixes, masks, strict=True):
        own = [part.repeat_interleave(repeats, 1) for part in held]
        if mask is None:
            outputs.append(attend(queries, *own, None, dropout, True, scale=scaling))
            continue
        if prefix:
            seen = [part[:, :, :prefix] for part in (queries, *own)]
            outputs.append(attend(*seen, None, dropout, True, scale=scaling))
        outputs.append(attend(queries[:, :, prefix:], *own, mask, dropout, scale=scaling))
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
    """(segments, longest) booleans: no padding; None if all segments are equally long."""
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
        """Write the results of the queries to their rows of x."""
        x[self.rows] = self._together(found.transpose(1, 2))

    def add(self, x: torch.Tensor, found: torch.Tensor) -> None:
        """Add the results of the keys to their rows of x."""
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
    owner = torch.repeat_interleave(torch.arange(len(segments)), torch.tensor(segments)).to(device, non_blocking=True)
    seen = torch.ones((len(owner), prefix + len(owner)), dtype=torch.bool, device=device)
    seen[:, prefix:] = (owner[:, None] == owner[None, :]).tril()
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, -torch.inf)[None, None]


def block_mask(layout: PackedLayout, device: torch.device) -> BlockMask:
    """The same for FlexAttention: blocks that no token sees are not computed."""
    _many_shapes()
    group, segment = (one.to(device) for one in owners_and_segments(layout))

    def seen(batch: Any, head: Any, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
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
