"""Keys and values of groups whose prompts are about equally long, and the attention of their completions over them.

A row holds the tokens of a completion, or of several that are alike so far. A token sees its group's prompt, which is
stored once, and the earlier tokens of its row. Both parts are products of rlvr_exp.rollouts.exact_products, with one softmax
over both, so that a token's result has the same bits whatever else is computed with it: other rows, other groups, or further
tokens of its own row in the same pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from rlvr_exp.rollouts.exact_products import EXACT, Places, times, weighed
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix

STEP = 16
"""Widths are multiples of it."""
RUN = 32
"""Widths of prompts above EXACT are multiples of it, so that no bit depends on longer ones beside them; those of one width are
computed together."""
AHEAD = 32
"""The initial room for tokens of a row; it then grows by half."""
SPARSE = 0.75
"""The share of rows below which those that have ended leave the block."""


@dataclass
class _Layer:
    keys: torch.Tensor
    """(groups, heads, width, dimension), as `values`, of the prompts"""
    values: torch.Tensor
    own_keys: torch.Tensor
    """(room for rows, heads, room for tokens, dimension), as `own_values`"""
    own_values: torch.Tensor


@dataclass(frozen=True)
class _Prefill:
    """Whole prompts, one after the other; those of about one width are computed together."""

    groups: slice
    take: torch.Tensor
    """(groups * width,) the token in each place of the groups' prompts; any token behind their ends"""
    runs: tuple[tuple[slice, int], ...]
    """Groups, counted from the first, and their width."""
    back: torch.Tensor
    """(tokens,) the place of each token, run by run"""


@dataclass(frozen=True)
class _Pass:
    """The tokens of one forward pass, row by row or in any other order. The rows' own products take them in slots (rows,
    tokens of each), the prompts' in places (groups, tokens of each); what holds no token holds the first."""

    rows: int
    width: int
    """Columns of the rows' part."""
    slots: "Places | None"
    """None: each row has the token of its own number."""
    groups: "Places"
    row: torch.Tensor
    """(tokens,) the row of each, and its `column` there"""
    column: torch.Tensor
    hidden: tuple[torch.Tensor, torch.Tensor]
    """(tokens, 1, prompt width) and (tokens, 1, width), additive"""


def width_of(length: int, unit: int = STEP) -> int:
    """Columns for so many tokens."""
    return -(-length // unit) * unit


class PrefixBlock:
    """Groups `first` to `first + len(lengths) - 1`, each with one row without tokens to begin with.

    Args:
        lengths: tokens of each group's prompt.
        limit: the most tokens of a row.
        like: a tensor of the model's dtype on its device.
    """

    def __init__(self, first: int, lengths: np.ndarray, limit: int, like: torch.Tensor):
        self.first, self._lengths, self._limit, self._like = first, lengths, limit, like
        self.width = width_of(int(lengths.max()), STEP if lengths.max() <= EXACT else RUN)
        self._room, self._rows = min(width_of(limit), AHEAD), len(lengths)
        self._group_of = np.arange(len(lengths))
        """(rows,) the group of each."""
        self.layers: dict[int, _Layer] = {}
        self._hidden = self._prompt_mask()
        self._now: _Prefill | _Pass | None = None
        self._write_indices: dict[int, torch.Tensor] = {}

    def prefill(self, groups: slice) -> None:
        """The next pass holds the prompts of these groups."""
        lengths = self._lengths[groups]
        inside = np.arange(self.width) < lengths[:, None]
        start = np.cumsum(lengths) - lengths
        take = np.where(inside, start[:, None] + np.arange(self.width), 0)
        runs, places, first = [], [], 0
        for width, run in groupby(min(self.width, width_of(int(length), RUN)) for length in lengths):
            last = first + sum(1 for _ in run)
            runs.append((slice(first, last), width))
            places.append(np.flatnonzero(inside[first:last, :width]))
            first = last
        sizes = np.cumsum([0, *((one.stop - one.start) * width for one, width in runs)])
        back = np.concatenate([place + size for place, size in zip(places, sizes, strict=False)])
        self._now = _Prefill(groups, self._index(take.reshape(-1)), tuple(runs), self._index(back))

    def load(self, prompts: Sequence[KeptPrefix]) -> None:
        """The prompts are these, which have been computed."""
        for layer, (key, value) in enumerate(prompts[0].layers):
            held = self._held(layer, key.transpose(0, 1), value.transpose(0, 1))
            for group, prompt in enumerate(prompts):
                for into, known in zip((held.keys, held.values), prompt.layers[layer], strict=True):
                    into[group, :, : known.shape[1]] = known

    def kept(self, row: int, used: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values (heads, tokens, dimension) of each layer: those of the row's prompt, and of its first `used` tokens."""
        group = self._group_of[row]
        length = self._lengths[group]
        return [
            (
                torch.cat([held.keys[group, :, :length], held.own_keys[row, :, :used]], 1),
                torch.cat([held.values[group, :, :length], held.own_values[row, :, :used]], 1),
            )
            for _, held in sorted(self.layers.items())
        ]

    def step(self, source: np.ndarray, counts: np.ndarray, used: np.ndarray) -> np.ndarray:
        """The next pass holds `counts[i]` further tokens of each row i, which continues the first `used[i]` tokens of row
        `source[i]` of the pass before. Several rows may continue one row; a row that none continues has ended. Returns
        where the rows are from now on."""
        place = self._continue(source, int((used + counts).max()))
        width, most = width_of(int((used + counts).max())), int(counts.max())
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        row, column = np.repeat(place, counts), np.repeat(used, counts) + offset
        slots = Places(row * most + offset, self._rows, most)
        groups = self._group_of[row]
        order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups, minlength=len(self._lengths))
        rank = np.empty(len(groups), dtype=np.int64)
        rank[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        many = int(sizes.max())
        own = torch.arange(width, device=self._like.device) <= self._index(column)[:, None]
        self._now = _Pass(
            self._rows,
            width,
            None if slots.trivial else slots,
            Places(groups * many + rank, len(sizes), many),
            self._index(row),
            self._index(column),
            (self._hidden[self._index(groups)][:, None], self._mask(own)[:, None]),
        )
        self._write_indices = {}
        return place

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float
    ) -> torch.Tensor:
        """Store keys and values (tokens, heads, dimension); returns outputs (tokens, query heads, dimension)."""
        held = self._held(layer, key, value)
        if isinstance(self._now, _Prefill):
            return self._attend_prompts(held, self._now, query, key, value, scaling)
        assert isinstance(self._now, _Pass)
        return self._attend_rows(held, self._now, query, key, value, scaling)

    @property
    def prompts(self) -> int:
        """How many prompts the pass holds."""
        assert isinstance(self._now, _Prefill)
        return self._now.groups.stop - self._now.groups.start

    def attend_last(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Store keys and values (tokens, heads, dimension) of whole prompts; returns outputs (prompts, query heads, dimension)
        of the queries of their last tokens, which see all of the prompt."""
        held = self._held(layer, key, value)
        assert isinstance(self._now, _Prefill)
        self._store_prompts(held, self._now, key, value)
        groups = self._now.groups
        scores = times(query, None, held.keys[groups].transpose(2, 3)) + self._hidden[groups, None]
        return weighed(scores.softmax(-1), None, held.values[groups])

    def _store_prompts(self, held: _Layer, now: _Prefill, key: torch.Tensor, value: torch.Tensor) -> None:
        take = now.take.to(key.device)
        for into, new in ((held.keys, key), (held.values, value)):
            into[now.groups] = new.index_select(0, take).view(-1, self.width, *new.shape[1:]).transpose(1, 2)

    def _attend_prompts(
        self, held: _Layer, now: _Prefill, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float
    ) -> torch.Tensor:
        self._store_prompts(held, now, key, value)
        query = query.index_select(0, now.take.to(query.device)).view(-1, self.width, *query.shape[1:]).transpose(1, 2)
        outputs = []
        for groups, width in now.runs:
            own = slice(now.groups.start + groups.start, now.groups.start + groups.stop)
            keys, values = held.keys[own, :, :width], held.values[own, :, :width]
            grouped = query.shape[1] != keys.shape[1]
            found = scaled_dot_product_attention(
                query[groups, :, :width], keys, values, is_causal=True, scale=scaling, enable_gqa=grouped
            )
            outputs.append(found.transpose(1, 2).flatten(0, 1))
        return torch.cat(outputs).index_select(0, now.back.to(query.device))

    def _attend_rows(
        self, held: _Layer, now: _Pass, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float
    ) -> torch.Tensor:
        for into, new in ((held.own_keys, key), (held.own_values, value)):
            flat = new.reshape(-1, new.shape[-1])
            into.view(-1, new.shape[-1]).index_copy_(0, self._write(key.shape[1]).to(new.device), flat)
        if scaling != 1.0:
            query = query * scaling
        own_keys = held.own_keys[: now.rows, :, : now.width].transpose(2, 3)
        parts = [times(query, now.groups, held.keys.transpose(2, 3)), times(query, now.slots, own_keys)]
        scores = query.new_empty((*query.shape[:2], self.width + now.width))
        for part, hidden, into in zip(parts, now.hidden, scores.tensor_split([self.width], -1), strict=True):
            torch.add(part, hidden.to(part.device), out=into)
        chances = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(scores.dtype)
        of_prompt, of_row = chances.tensor_split([self.width], -1)
        own_values = held.own_values[: now.rows, :, : now.width]
        return weighed(of_prompt, now.groups, held.values) + weighed(of_row, now.slots, own_values)

    def _write(self, heads: int) -> torch.Tensor:
        """(tokens * heads,) where the keys of the pass go among rows * heads * room."""
        found = self._write_indices.get(heads)
        if found is None:
            assert isinstance(self._now, _Pass)
            each = (self._now.row * heads)[:, None] + torch.arange(heads, device=self._like.device)
            found = self._write_indices[heads] = (each * self._room + self._now.column[:, None]).view(-1)
        return found

    def _continue(self, source: np.ndarray, width: int) -> np.ndarray:
        """Make rows that continue `source`; returns their places."""
        first = np.zeros(len(source), dtype=bool)
        alive, own = np.unique(source, return_index=True)
        first[own] = True
        if len(source) <= SPARSE * self._rows:
            self._pack(source, width)
            return np.arange(len(source))
        place = source.copy()
        ended = np.setdiff1d(np.arange(self._rows), alive)
        forks = np.flatnonzero(~first)
        place[forks] = np.concatenate([ended, self._rows + np.arange(max(0, len(forks) - len(ended)))])[: len(forks)]
        self._rows = max(self._rows, int(place.max()) + 1)
        self._reserve(width)
        self._group_of[place[forks]] = self._group_of[source[forks]]
        if len(forks):
            into, out_of = self._index(place[forks]), self._index(source[forks])
            for held in self.layers.values():
                for x in (held.own_keys, held.own_values):
                    x[into.to(x.device)] = x[out_of.to(x.device)]
        return place

    def _pack(self, source: np.ndarray, width: int) -> None:
        """Keep the rows of `source` alone, in this order, and the prompts of their groups."""
        groups, group_of = np.unique(self._group_of[source], return_inverse=True)
        rows, kept = self._index(source), self._index(groups)
        for held in self.layers.values():  # Layers may be spread over devices.
            if len(groups) < len(self._lengths):
                far = kept.to(held.keys.device)
                held.keys, held.values = held.keys[far], held.values[far]
            near = rows.to(held.keys.device)
            held.own_keys, held.own_values = held.own_keys[near], held.own_values[near]
        self._hidden, self._lengths = self._hidden[kept], self._lengths[groups]
        self._group_of, self._rows = group_of, len(source)
        self._reserve(width)

    def _reserve(self, width: int) -> None:
        """Room for `_rows` rows of `width` tokens."""
        more = 0
        if width > self._room:
            more = min(width_of(self._limit), width_of(max(width, self._room + self._room // 2))) - self._room
            self._room += more
        rows = max(0, self._rows - len(self._group_of))
        rows = max(rows, len(self._group_of) // 2) if rows else 0
        if more or rows:
            self._group_of = np.concatenate([self._group_of, np.zeros(rows, dtype=self._group_of.dtype)])
            for held in self.layers.values():
                held.own_keys, held.own_values = (
                    pad(x, (0, 0, 0, more, 0, 0, 0, rows)) for x in (held.own_keys, held.own_values)
                )

    def _held(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> _Layer:
        if layer not in self.layers:
            self.layers[layer] = self._new(key, value)
        return self.layers[layer]

    def _new(self, key: torch.Tensor, value: torch.Tensor) -> _Layer:
        """Zeros, not uninitialised memory: masked columns contribute zero times their value, which must be finite."""
        groups, rows = len(self._lengths), len(self._group_of)
        prompts, own = ((groups, key.shape[1], self.width), (rows, key.shape[1], self._room))
        return _Layer(
            key.new_zeros((*prompts, key.shape[-1])),
            value.new_zeros((*prompts, value.shape[-1])),
            key.new_zeros((*own, key.shape[-1])),
            value.new_zeros((*own, value.shape[-1])),
        )

    def _prompt_mask(self) -> torch.Tensor:
        """(groups, width)"""
        return self._mask(torch.from_numpy(np.arange(self.width) < self._lengths[:, None]).to(self._like.device))

    def _mask(self, seen: torch.Tensor) -> torch.Tensor:
        """Additive."""
        return self._like.new_zeros(seen.shape).masked_fill_(~seen, torch.finfo(self._like.dtype).min)

    def _index(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(self._like.device, non_blocking=True)
