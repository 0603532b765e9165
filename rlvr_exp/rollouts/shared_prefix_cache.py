"""Keys and values of groups being decoded, and the attention over them.

All tokens of a forward pass stand in one row without padding: first the prompts, later the next tokens of each live
completion. Layers that act on single tokens (projections, norms, experts, the head) compute live tokens only. The attention
is registered in Transformers (AttentionInterface), so that any architecture with that interface can be decoded.

A `PrefixBlock` holds groups whose prompts are about equally long. A row of it holds the tokens of a completion, or of several
that are equal so far. A token sees its group's prompt, which is stored once, and the earlier tokens of its row. Both parts are
batched products with one softmax over both.

A token's result has the same bits whatever else is computed with it, on machines whose libraries keep two rules
(tests/rollouts/test_shared_prefix_cache.py tries them):

- a product has at least `ROWS` rows, below which libraries compute in another order;
- a sum goes over at most `EXACT` columns at once, where columns of zeros change nothing; a longer one is made part by part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface

from rlvr_exp.rollouts.kept_prefixes import KeptPrefix

EXACT = 192
"""Columns up to which zeros behind them change no bit of a product."""
ROWS = 4
"""The fewest rows of a product whose bits do not depend on their number."""


class Places:
    """Positions of tokens among owners with room for `many` each; a place that holds none stands for the first token.

    Args:
        place: (tokens,) of each, owner by owner.
    """

    def __init__(self, place: np.ndarray, owners: int, many: int):
        self.owners, self.many = owners, many
        self._place, self._token = place, np.zeros(owners * many, dtype=np.int64)
        self._token[place] = np.arange(len(place))
        self._indices: dict[tuple[int, torch.device], tuple[torch.Tensor, torch.Tensor]] = {}

    @property
    def trivial(self) -> bool:
        """Whether each owner has the token of its own number."""
        return (
            self.many == 1
            and len(self._place) == len(self._token)
            and bool((self._token == np.arange(len(self._token))).all())
        )

    def indices(self, heads: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """(owners * heads * many,) which of tokens * heads each is; and (tokens * heads,) the way back."""
        found = self._indices.get((heads, device))
        if found is None:
            head = np.arange(heads)
            out = self._token.reshape(self.owners, 1, self.many) * heads + head[:, None]
            back = (self._place // self.many * heads * self.many + self._place % self.many)[:, None] + head * self.many
            both = (torch.from_numpy(x.reshape(-1)).to(device, non_blocking=True) for x in (out, back))
            found = self._indices[heads, device] = tuple(both)
        return found


def times(x: torch.Tensor, places: Places | None, right: torch.Tensor) -> torch.Tensor:
    """Each token's x (tokens, query heads, inner) times its owner's `right` (owners, heads, inner, columns); without places the
    token's own. Query heads that share their keys are further rows of a single head's product: keys are read once, not
    repeated. The sum over `inner` is one."""
    heads, inner = right.shape[1:3]
    shared = x.shape[1] // heads
    parts = x.reshape(-1, shared, inner) if x.is_contiguous() else x.unflatten(1, (heads, shared)).flatten(0, 1)
    if places is not None:
        out, back = places.indices(heads, x.device)
        parts = parts.index_select(0, out).view(len(right) * heads, places.many * shared, inner)
    rows = parts.shape[1]
    padded = parts if rows >= ROWS or x.device.type != "cpu" else pad(parts, (0, 0, 0, ROWS - rows))
    found = torch.bmm(padded, right.flatten(0, 1))[:, :rows]
    if places is not None:
        found = found.reshape(-1, shared, found.shape[-1]).index_select(0, back)
    return found.reshape(*x.shape[:2], -1)


def weighed(chances: torch.Tensor, places: Places | None, values: torch.Tensor) -> torch.Tensor:
    """Each token's `chances` (tokens, query heads, columns) times its owner's `values` (owners, heads, columns, dimension); see
    `times`. Summed in parts of EXACT columns on CPU."""
    part = EXACT if values.device.type == "cpu" else values.shape[2]
    cuts = [slice(start, start + part) for start in range(0, values.shape[2], part)]
    total = times(chances[..., cuts[0]], places, values[:, :, cuts[0]])
    for cut in cuts[1:]:
        total = total + times(chances[..., cut], places, values[:, :, cut])
    return total


STEP = 16
"""Widths are multiples of it."""
RUN = 32
"""Widths of prompts above EXACT are multiples of it, so that no bit depends on longer ones beside them; those of one width are
computed together."""
AHEAD = 32
"""The initial room for tokens of a row; it then grows by half."""
SPARSE = 0.75
"""The share of rows below which those that have ended leave the block, on CPU. On a GPU they leave at once."""


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
    tokens of each), the prompts' in places (groups, tokens of each); a place without a token holds the first."""

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
        seen = torch.from_numpy(np.arange(self.width) < lengths[:, None]).to(like.device)
        self._hidden = self._mask(seen)
        """(groups, width) additive mask of the prompts."""
        self._now: _Prefill | _Pass | None = None
        self._write_indices: dict[int, torch.Tensor] = {}
        self._sparse = self._usual = SPARSE if like.device.type == "cpu" else 1.0
        """Pack the rows if those that go on are no larger share."""

    def compact(self) -> None:
        """Let all rows that have ended leave with the next pass, to make room."""
        self._sparse = 1.0

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
        """Start with these prompts, whose keys and values have been computed."""
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

    def step(self, place: np.ndarray, counts: np.ndarray, used: np.ndarray) -> None:
        """The next pass holds `counts[i]` further tokens of each row `place[i]`, behind its first `used[i]` tokens. Places ascend."""
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
        chances = scores.softmax(-1)
        of_prompt, of_row = chances.tensor_split([self.width], -1)
        own_values = held.own_values[: now.rows, :, : now.width]
        return weighed(of_prompt, now.groups, held.values) + weighed(of_row, now.slots, own_values)

    def _write(self, heads: int) -> torch.Tensor:
        """(tokens * heads,) places of the keys of the pass among rows * heads * room."""
        found = self._write_indices.get(heads)
        if found is None:
            assert isinstance(self._now, _Pass)
            each = (self._now.row * heads)[:, None] + torch.arange(heads, device=self._like.device)
            found = self._write_indices[heads] = (each * self._room + self._now.column[:, None]).view(-1)
        return found

    def continued(self, source: np.ndarray, width: int) -> np.ndarray:
        """Make rows that continue those of `source`, with room for `width` tokens; returns their places from now on. Several rows
        may continue one row; a row that none continues has ended."""
        first = np.zeros(len(source), dtype=bool)
        alive, own = np.unique(source, return_index=True)
        first[own] = True
        sparse, self._sparse = self._sparse, self._usual
        if len(source) <= sparse * self._rows and len(alive) < self._rows:
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
            # Zeros, not uninitialised memory: masked columns contribute zero times their value, which must be finite.
            prompts = len(self._lengths), key.shape[1], self.width
            own = len(self._group_of), key.shape[1], self._room
            sizes = [(one, shape) for shape in (prompts, own) for one in (key, value)]
            self.layers[layer] = _Layer(*(one.new_zeros((*shape, one.shape[-1])) for one, shape in sizes))
        return self.layers[layer]

    def _mask(self, seen: torch.Tensor) -> torch.Tensor:
        """Additive."""
        return self._like.new_zeros(seen.shape).masked_fill_(~seen, torch.finfo(self._like.dtype).min)

    def _index(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(self._like.device, non_blocking=True)


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
    """Groups decoded together. Completion i belongs to group `owner[i]`; `owner` ascends. Groups are admitted in their order, at any
    time; the memory of a block is free once all of its completions have ended.

    Completions of a group that are alike so far are one row; the row parts when they differ.

    Args:
        lengths: tokens of each group's prompt.
        limit: the most tokens of a completion that attention looks back on.
        like: a tensor of the model's dtype on its device.
    """

    def __init__(self, lengths: Sequence[int], owner: np.ndarray, limit: int, like: torch.Tensor):
        self.longest = max(lengths) + limit
        self._lengths, self._owner = np.array(lengths, dtype=np.int64), owner
        self._limit, self._like = limit, like
        self._used = np.zeros(len(owner), dtype=np.int64)
        """(completions,) tokens of each that are held."""
        self.blocks: list[PrefixBlock] = []
        self._ends = np.zeros(0, dtype=np.int64)
        """(blocks,) the group after the last of each"""
        self._row = np.zeros(len(owner), dtype=np.int64)
        """(completions,) the row of each in its block"""
        self._now: list[tuple[PrefixBlock, slice]] = []
        """The blocks of a pass, and the tokens of each."""

    def admit(self, first: int, last: int, begun: Sequence[KeptPrefix] = ()) -> None:
        """Make room for groups first to last - 1, which follow those before. `begun`: of each group its prompt, whose keys and values
        have been computed."""
        for block in self.blocks:
            block.compact()
        for start, end in _runs(self._lengths[first:last]):
            block = PrefixBlock(first + start, self._lengths[first + start : first + end], self._limit, self._like)
            if begun:
                block.load(begun[start:end])
            self.blocks.append(block)
            self._ends = np.append(self._ends, first + end)
            own = (self._owner >= first + start) & (self._owner < first + end)
            self._row[own] = self._owner[own] - (first + start)

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
        self._now, start, place, order = [], 0, np.empty(len(rows), dtype=np.int64), []
        going = np.unique(block)
        for number in set(range(len(self.blocks))).difference(going.tolist()):
            self.blocks[number].layers.clear()
        for number in going:
            own = np.flatnonzero(block == number)
            place[own] = self.blocks[number].continued(self._row[rows[own]], int((used + counts_of)[own].max()))
            own = own[place[own].argsort()]  # If no row has ended, each token now has the number of its row.
            self.blocks[number].step(place[own], counts_of[own], used[own])
            order.append(own)
            size = int(counts_of[own].sum())
            self._now.append((self.blocks[number], slice(start, start + size)))
            start += size
        self._row[live] = place[row]
        self._used[live] += counts
        along = np.concatenate(order)
        first, counts_of, begins = first[along], counts_of[along], np.empty_like(counts_of)
        begins[along] = np.cumsum(counts_of) - counts_of
        offset = np.arange(start) - np.repeat(begins[along], counts_of)
        positions = np.repeat((self._lengths[self._owner[rows]] + used)[along], counts_of) + offset
        return fed[first][fed[first] >= 0], positions, begins[row]

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
