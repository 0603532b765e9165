"""Keys and values of groups being decoded, preallocated, and the attention over them.

All tokens of a forward pass stand in one row without padding: prompts one after the other, later one token for each live
completion. Layers that act on single tokens (projections, norms, experts, the head) are thus computed for live tokens
only. This module does the rest: a group's prompt is stored once, the tokens of its completions follow it in the order in
which they were drawn, and a mask lets a completion see only the prompt and itself. It is registered in Transformers as an
attention function (AttentionInterface), so any architecture that uses that interface can be decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

NAME = "rlvr_exp_groups"
"""The name of the attention function in Transformers' registry."""
_PROMPT, _EMPTY = -1, -2
"""Owners of a column that belongs to no completion."""
_AHEAD = 16
"""The initial room for tokens of each completion; it then grows by half."""
_SPARSE = 0.75
"""The share of live groups below which finished groups leave the cache."""


class CannotGroup(Exception):
    """This cache cannot compute the architecture's attention."""


def attend(module, query, key, value, attention_mask, scaling=None, group_cache=None, **others):
    """Transformers' attention function for a forward pass of a SharedPrefixCache; shapes (1, heads, tokens, dimension).

    Raises:
        CannotGroup: the layer needs more than a softmax over the tokens that it may see.
    """
    if group_cache is None or attention_mask is not None:
        raise CannotGroup("the model keeps options of its attention to itself, or makes a mask of its own")
    wanted = [name for name in ("softcap", "s_aux", "position_bias") if others.get(name) is not None]
    window = others.get("sliding_window")
    if wanted or (window is not None and window < group_cache.longest):
        raise CannotGroup(f"its attention uses {wanted[0] if wanted else 'a sliding window'}")
    return group_cache.attend(module.layer_idx, query[0], key[0], value[0], scaling)[None], None


AttentionInterface.register(NAME, attend)


@dataclass
class _Layer:
    """(rows, columns, heads, dimension) each"""

    keys: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True)
class _Prefill:
    """Prompts in one row of tokens."""

    spans: tuple[tuple[int, int], ...]
    write: torch.Tensor
    """(tokens,) places among rows * columns"""


@dataclass(frozen=True)
class _Step:
    """One token of each live completion. A row's live completions take its first slots; the other slots are padding."""

    width: int
    """Columns in use."""
    slots: int
    write: torch.Tensor
    """(tokens,) places among rows * columns"""
    take: torch.Tensor | None
    """(rows * slots,) the token in each slot; None: tokens are in order already."""
    back: torch.Tensor | None
    """(tokens,) the slot of each token"""
    mask: torch.Tensor
    """(rows, slots, width) additive"""


class SharedPrefixCache:
    """Groups decoded together. Completion i belongs to group `owner[i]`; `owner` ascends.

    Args:
        lengths: tokens of each group's prompt.
        limit: the most tokens of a completion that attention looks back on.
        dtype: of the model.
    """

    def __init__(self, lengths: Sequence[int], owner: np.ndarray, limit: int, dtype: torch.dtype, device: torch.device):
        self.longest = max(lengths) + limit
        self._owner, self._dtype, self._device = owner, dtype, device
        self._used = np.array(lengths, dtype=np.int64)
        """(rows,) columns of each row that hold a token."""
        self._row_of = np.arange(len(lengths))
        """(groups,) the row of each group; undefined for a group that has left."""
        sizes = np.bincount(owner, minlength=len(lengths))
        self._most = int((self._used + limit * sizes).max())
        self._room = int((self._used + min(limit, _AHEAD) * sizes).max())
        self._columns = torch.full((len(lengths), self._room), _EMPTY, device=device)
        """(rows, room) the completion that each column belongs to."""
        for row, length in enumerate(lengths):
            self._columns[row, :length] = _PROMPT
        self._layers: dict[int, _Layer] = {}
        self._now: _Prefill | _Step | None = None
        self._masks: dict[int, torch.Tensor] = {}

    def prefill(self, first: int, last: int) -> None:
        """The next forward pass holds the prompts of groups first to last - 1, one after the other."""
        ends = np.cumsum(self._used[first:last])
        spans = tuple((int(end - size), int(end)) for end, size in zip(ends, self._used[first:last], strict=True))
        places = [row * self._room + np.arange(self._used[row]) for row in range(first, last)]
        self._now = _Prefill(spans, self._index(np.concatenate(places)))

    def step(self, live: np.ndarray) -> None:
        """The next forward pass holds one token of each completion in `live`, ascending."""
        self._leave(np.unique(self._owner[live]))
        rows = self._row_of[self._owner[live]]
        counts = np.bincount(rows, minlength=len(self._used))
        rank = np.arange(len(live)) - (np.cumsum(counts) - counts)[rows]
        columns = self._used[rows] + rank
        self._used = self._used + counts
        self._grow(int(self._used.max()))
        slots, width = int(counts.max()), int(self._used.max())
        write = self._index(rows * self._room + columns)
        self._columns.view(-1)[write] = self._index(live)
        taken = np.full((len(counts), slots), -1)
        taken[rows, rank] = np.arange(len(live))
        packed = taken.size == len(live)
        self._now = _Step(
            width,
            slots,
            write,
            None if packed else self._index(taken.clip(0).reshape(-1)),
            None if packed else self._index(rows * slots + rank),
            self._mask(np.where(taken < 0, _PROMPT, live[taken]), width),
        )
        self._masks = {}

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        """Store keys and values (heads, tokens, dimension); returns outputs (tokens, query heads, dimension)."""
        held = self._layers.get(layer)
        if held is None:
            held = self._layers[layer] = _Layer(self._new(key), self._new(value))
        for into, new in ((held.keys, key), (held.values, value)):
            into.view(-1, *into.shape[2:]).index_copy_(0, self._now.write.to(into.device), new.transpose(0, 1))
        if isinstance(self._now, _Prefill):
            return self._attend_prompts(query, key, value, scaling)
        return self._attend_step(held, query, scaling)

    def _attend_prompts(self, query, key, value, scaling) -> torch.Tensor:
        grouped = query.shape[0] != key.shape[0]
        parts = [
            scaled_dot_product_attention(
                query[None, :, a:b],
                key[None, :, a:b],
                value[None, :, a:b],
                is_causal=True,
                scale=scaling,
                enable_gqa=grouped,
            )
            for a, b in self._now.spans
        ]
        return torch.cat(parts, dim=2)[0].transpose(0, 1)

    def _attend_step(self, held: _Layer, query: torch.Tensor, scaling: float | None) -> torch.Tensor:
        step, rows, heads = self._now, held.keys.shape[0], held.keys.shape[2]
        shared, size = query.shape[0] // heads, query.shape[-1]
        tokens = query.transpose(0, 1)
        if step.take is not None:
            tokens = tokens.index_select(0, step.take.to(tokens.device))
        # Query heads that share their keys become further queries of a single head: keys are read once, not repeated.
        tokens = tokens.reshape(rows, step.slots, heads, shared, size).permute(0, 2, 3, 1, 4)
        outputs = scaled_dot_product_attention(
            tokens.reshape(rows, heads, shared * step.slots, size),
            held.keys[:, : step.width].transpose(1, 2),
            held.values[:, : step.width].transpose(1, 2),
            attn_mask=self._mask_of(shared).to(tokens.device),
            scale=scaling,
        )
        outputs = outputs.view(rows, heads, shared, step.slots, -1).permute(0, 3, 1, 2, 4)
        outputs = outputs.reshape(rows * step.slots, heads * shared, -1)
        return outputs if step.back is None else outputs.index_select(0, step.back.to(outputs.device))

    def _mask_of(self, shared: int) -> torch.Tensor:
        """(rows, 1, shared * slots, width), the same for all layers."""
        mask = self._masks.get(shared)
        if mask is None:
            base = self._now.mask
            mask = self._masks[shared] = (
                base[:, None].expand(-1, shared, -1, -1).reshape(len(base), 1, -1, base.shape[-1])
            )
        return mask

    def _mask(self, slots: np.ndarray, width: int) -> torch.Tensor:
        columns = self._columns[:, None, :width]
        seen = (columns == self._index(slots)[..., None]) | (columns == _PROMPT)
        return torch.zeros(seen.shape, dtype=self._dtype, device=self._device).masked_fill_(
            ~seen, torch.finfo(self._dtype).min
        )

    def _leave(self, groups: np.ndarray) -> None:
        """Remove the rows of finished groups, once there are many."""
        if len(groups) > _SPARSE * len(self._used):
            return
        rows = self._row_of[groups]
        kept = self._index(rows)
        self._used, self._columns = self._used[rows], self._columns[kept]
        for held in self._layers.values():  # Layers may be spread over devices.
            own = kept.to(held.keys.device)
            held.keys, held.values = held.keys[own], held.values[own]
        self._row_of[groups] = np.arange(len(groups))

    def _grow(self, width: int) -> None:
        if width <= self._room:
            return
        more = min(self._most, max(width, self._room + self._room // 2)) - self._room
        self._room += more
        self._columns = torch.nn.functional.pad(self._columns, (0, more), value=_EMPTY)
        for held in self._layers.values():
            held.keys, held.values = (
                torch.nn.functional.pad(x, (0, 0, 0, 0, 0, more)) for x in (held.keys, held.values)
            )

    def _new(self, like: torch.Tensor) -> torch.Tensor:
        """Zeros, not uninitialised memory: masked columns contribute zero times their value, which must be finite."""
        return like.new_zeros((len(self._used), self._room, like.shape[0], like.shape[2]))

    def _index(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(self._device, non_blocking=True)
