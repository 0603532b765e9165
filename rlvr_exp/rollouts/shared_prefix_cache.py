"""Keys and values of groups being decoded, and the attention over them.

All tokens of a forward pass stand in one row without padding: prompts one after the other, later the next tokens of each
live completion. Layers that act on single tokens (projections, norms, experts, the head) are thus computed for live tokens
only. The attention is that of rlvr_exp.rollouts.prefix_block, block by block. It is registered in Transformers as an
attention function (AttentionInterface), so any architecture that uses that interface can be decoded.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AttentionInterface

from rlvr_exp.rollouts.exact_products import EXACT
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix
from rlvr_exp.rollouts.prefix_block import PrefixBlock

NAME = "rlvr_exp_groups"
"""The name of the attention function in Transformers' registry."""


class CannotGroup(Exception):
    """This cache cannot compute the architecture's attention."""


def attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    group_cache: Any = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
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
    rows = (x[0].transpose(0, 1) for x in (query, key, value))
    return group_cache.attend(module.layer_idx, *rows, query.shape[-1] ** -0.5 if scaling is None else scaling)[
        None
    ], None


AttentionInterface.register(NAME, attend)


class SharedPrefixCache:
    """Groups decoded together. Completion i belongs to group `owner[i]`; `owner` ascends.

    Completions of a group that are alike so far are one row; it parts where they do.

    Args:
        lengths: tokens of each group's prompt.
        limit: the most tokens of a completion that attention looks back on.
        like: a tensor of the model's dtype on its device.
    """

    def __init__(self, lengths: Sequence[int], owner: np.ndarray, limit: int, like: torch.Tensor):
        self.longest = max(lengths) + limit
        self._lengths, self._owner = np.array(lengths, dtype=np.int64), owner
        self._used = np.zeros(len(owner), dtype=np.int64)
        """(completions,) tokens of each that are held."""
        bounds = list(_runs(self._lengths))
        self.blocks = [PrefixBlock(first, self._lengths[first:last], limit, like) for first, last in bounds]
        self._ends = np.array([last for _, last in bounds])
        starts = np.array([first for first, _ in bounds])
        self._row = owner - starts[np.searchsorted(self._ends, owner, side="right")]
        """(completions,) the row of each in its block"""
        self._now: list[tuple[PrefixBlock, slice]] = []
        """The blocks of a pass, and the tokens of each."""

    def prefill(self, first: int, last: int) -> None:
        """The next forward pass holds the prompts of groups first to last - 1, one after the other."""
        self._now, start = [], 0
        for block, end in zip(self.blocks, self._ends, strict=True):
            low, high = max(first, block.first), min(last, int(end))
            if low < high:
                size = int(self._lengths[low:high].sum())
                block.prefill(slice(low - block.first, high - block.first))
                self._now.append((block, slice(start, start + size)))
                start += size

    def load(self, prompts: Sequence[KeptPrefix]) -> None:
        """The groups' prompts are these, which have been computed."""
        for block, end in zip(self.blocks, self._ends, strict=True):
            block.load(prompts[block.first : end])

    def kept(self, completion: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values (heads, tokens, dimension) of each layer, of the prompt and the tokens so far of a completion that is live
        or has ended with the last pass."""
        block = self.blocks[np.searchsorted(self._ends, self._owner[completion], side="right")]
        return block.kept(int(self._row[completion]), int(self._used[completion]))

    def step(self, live: np.ndarray, fed: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The next forward pass holds the next tokens of each completion in `live`, ascending: the first `counts[i]` of
        `fed[i]`. Returns the tokens of all rows, their positions, and (completions,) where each completion's tokens begin
        among them."""
        group = self._owner[live]
        block = np.searchsorted(self._ends, group, side="right")
        fed = np.where(np.arange(fed.shape[1]) < counts[:, None], fed, -1)
        first, row = _distinct(
            np.concatenate([self._row[live, None], self._used[live, None], group[:, None], fed], axis=1)
        )
        rows = live[first]
        block, counts_of, used = block[first], counts[first], self._used[rows]
        self._now, start, place = [], 0, np.empty(len(rows), dtype=np.int64)
        for number in np.unique(block):
            own = np.flatnonzero(block == number)
            place[own] = self.blocks[number].step(self._row[rows[own]], counts_of[own], used[own])
            size = int(counts_of[own].sum())
            self._now.append((self.blocks[number], slice(start, start + size)))
            start += size
        self._row[live] = place[row]
        self._used[live] += counts
        begins = np.cumsum(counts_of) - counts_of
        offset = np.arange(start) - np.repeat(begins, counts_of)
        positions = np.repeat(self._lengths[self._owner[rows]] + used, counts_of) + offset
        return fed[first][fed[first] >= 0], positions, begins[row]

    def forget(self, live: np.ndarray, counts: np.ndarray) -> None:
        """The last `counts[i]` tokens of each completion are no part of it."""
        self._used[live] -= counts

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float
    ) -> torch.Tensor:
        """Store keys and values (tokens, heads, dimension); returns outputs (tokens, query heads, dimension)."""
        parts = [block.attend(layer, query[own], key[own], value[own], scaling) for block, own in self._now]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def attend_last(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Store keys and values (tokens, heads, dimension) of whole prompts; returns outputs (prompts, query heads, dimension)
        of the queries of their last tokens, which are scaled already."""
        parts, first = [], 0
        for block, own in self._now:
            last = first + block.prompts
            parts.append(block.attend_last(layer, query[first:last], key[own], value[own]))
            first = last
        return torch.cat(parts)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(kinds,) the first row of each kind of equal rows, in their order; and (rows,) the kind of each."""
    kinds: dict[bytes, int] = {}
    size, data = rows.shape[1] * rows.itemsize, rows.tobytes()
    kind = np.array([kinds.setdefault(data[at : at + size], len(kinds)) for at in range(0, len(data), size)])
    first = np.empty(len(kinds), dtype=np.int64)
    first[kind[::-1]] = np.arange(len(rows))[::-1]
    return first, kind


def _runs(lengths: np.ndarray) -> Iterator[tuple[int, int]]:
    """Neighbouring groups whose prompts go into one block: all up to EXACT tokens, or up to the same power of two times it."""
    first = 0
    for _, run in groupby(max(0, (int(length) - 1) // EXACT).bit_length() for length in lengths):
        last = first + sum(1 for _ in run)
        yield first, last
        first = last
