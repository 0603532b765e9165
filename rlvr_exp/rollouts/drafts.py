"""Guesses of a completion's next tokens, so that one forward pass can yield several.

A guess costs a row of the pass and decides nothing: each position is drawn from its own logits and its own random number,
and a guess counts where it is what was drawn (speculative decoding, Leviathan et al. 2023, with the draws of plain sampling
in place of its rejection step). So tokens and log-probabilities are those of sampling without guesses, bit for bit where
the pass computes a token alike in any company (rlvr_exp.rollouts.shared_prefix_decoder).

Guesses are looked up by the tokens before (n-grams): first among those of the same prompt and its other completions, then
among all that this model has sampled in this process. Which guesses a pass takes follows from what passes cost and from how many
of their kind were right lately; it may differ from run to run, and the completions do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np
from torch import nn

ORDERS = (4, 2, 1)
"""How many tokens before are looked up, the first that is known counts."""
MOST = 8
"""The most guesses of a completion in a pass."""
REACH = max(ORDERS)
"""Tokens that are looked back on."""
_FADE = 0.98
"""What is left of an observation after each pass: some 50 passes count."""
_FIRST = np.array([3e-3, 5e-5, 5e-5])
"""Seconds of a pass, a row and a slot until passes were seen: those of the embedded model."""
_BITS = 18
_TOKEN = 24
"""Bits of an entry that hold the token; the others say for which tokens it stands."""
_ROOM = 1 << _BITS
_MIX = np.uint64(0x9E3779B97F4A7C15)
_OF_MODEL: WeakKeyDictionary[nn.Module, "Drafts"] = WeakKeyDictionary()


@dataclass(frozen=True)
class Guesses:
    """What may follow; both (rows, depth), with -1 behind the last guess of a row."""

    tokens: np.ndarray
    kinds: np.ndarray
    """How each was found: its place in a table of orders and of whose n-grams."""


class Drafts:
    """What is remembered of a model's completions, and of what guessing brought."""

    def __init__(self) -> None:
        self._entries = np.full((len(ORDERS), _ROOM), -1, dtype=np.int64)
        self._salt = 0
        self._tried, self._right = np.zeros((2, 2 * len(ORDERS)))
        """Guesses of each kind, and how many were right; older ones count less."""
        self.pace = Pace()

    @classmethod
    def of(cls, model: nn.Module) -> "Drafts":
        """Those of this model, from earlier batches too."""
        return _OF_MODEL.setdefault(model, cls())

    def begin(self, prompts: Sequence[Sequence[int]]) -> np.ndarray:
        """(prompts,) the numbers under which their own n-grams are kept; those of the prompts are learned."""
        numbers = np.arange(self._salt + 1, self._salt + 1 + len(prompts), dtype=np.uint64)
        self._salt += len(prompts)
        tokens = np.concatenate([[-1] * REACH + list(prompt) for prompt in prompts])
        ends = np.flatnonzero(np.concatenate([np.arange(-REACH, len(prompt)) for prompt in prompts]) > 0)
        owners = np.repeat(numbers, [len(prompt) + REACH for prompt in prompts])[ends]
        self._learn(tokens[ends[:, None] + np.arange(-REACH, 0)], tokens[ends], owners)
        return numbers

    def learn(self, before: np.ndarray, tokens: np.ndarray, prompts: np.ndarray) -> None:
        """
        Args:
            before: (rows, REACH) the tokens before each of `tokens`; -1: none.
            prompts: (rows,) numbers that `begin` gave.
        """
        self._learn(before, tokens, prompts)
        self._learn(before, tokens, np.zeros_like(prompts))

    def guess(self, before: np.ndarray, prompts: np.ndarray, most: np.ndarray, least: float) -> Guesses:
        """At most `most` guesses of each row. Depths are added while the mean probability over rows that a guess at that depth
        is right is at least `least`: a pass has as many slots for each row as one of them has tokens."""
        depths = int(most.max(initial=0))
        tokens, kinds = np.full((2, len(before), depths), -1)
        # A kind that was given up fades back to one half, and is tried again.
        chances, rates = np.ones(len(before)), np.append((self._right + 2) / (self._tried + 4), 0.0)
        for depth in range(depths):
            token, kind = self._next(before, prompts)
            chances = np.where(depth < most, chances * rates[kind], 0.0)
            if chances.mean() < least:
                return Guesses(tokens[:, :depth], kinds[:, :depth])
            fits = chances > 0
            tokens[fits, depth], kinds[fits, depth] = token[fits], kind[fits]
            before = np.concatenate([before[:, 1:], token[:, None]], axis=1)
        return Guesses(tokens, kinds)

    def observe(self, guesses: Guesses, right: np.ndarray) -> None:
        """`right`: (rows,) how many of a row's first guesses were right."""
        depth = np.arange(guesses.kinds.shape[1])
        tried = (guesses.kinds >= 0) & (depth <= right[:, None])
        good = tried & (depth < right[:, None])
        for held, cases in ((self._tried, tried), (self._right, good)):
            held *= _FADE
            held += np.bincount(guesses.kinds[cases], minlength=len(held))

    def _next(self, before: np.ndarray, prompts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows,) the token that followed these the last time, and the kind of the guess; -1: unknown."""
        tokens, kinds = np.full((2, len(before)), -1)
        everyone = np.zeros_like(prompts)
        for kind, (row, owner) in enumerate(product(range(len(ORDERS)), (prompts, everyone))):
            place, tag = _address(before[:, -ORDERS[row] :], owner)
            entry = self._entries[row, place]
            found = (tokens < 0) & (entry >> _TOKEN == tag)
            tokens[found], kinds[found] = entry[found] & ((1 << _TOKEN) - 1), kind
        return tokens, kinds

    def _learn(self, before: np.ndarray, tokens: np.ndarray, owners: np.ndarray) -> None:
        for order, entries in zip(ORDERS, self._entries, strict=True):
            place, tag = _address(before[:, -order:], owners)
            entries[place] = tag << _TOKEN | tokens


class Pace:
    """What a pass costs, fitted to the passes so far; older ones count less. In seconds: in any case, for each row, and for each
    slot, of which every row has as many as one of them has tokens."""

    def __init__(self) -> None:
        self._products = np.diag([1.0, 1e-3, 1e-3])
        self._seconds = self._products @ _FIRST

    def least(self, rows: int) -> float:
        """The probability of being right from which a guess pays, in a pass of `rows` rows: its cost over the pass's, by row,
        since a right guess saves a row's share of a pass."""
        fixed, row, slot = self._cost()
        return slot * rows / (fixed + (row + slot) * rows)

    def observe(self, rows: int, slots: int, seconds: float) -> None:
        """A pass of so many rows, with so many slots in all."""
        sizes = np.array([1.0, rows, slots])
        self._products = _FADE * self._products + np.outer(sizes, sizes)
        self._seconds = _FADE * self._seconds + sizes * seconds

    def _cost(self) -> np.ndarray:
        found = np.linalg.solve(self._products + 1e-9 * np.eye(3), self._seconds)  # solvable when all were alike
        return np.maximum(found, _FIRST / 100)


def _address(before: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of an n-gram's entry, and a tag that tells it from others there."""
    key = owners * np.uint64(0xD6E8FEB86659FD93)
    for column in before.T.astype(np.uint64):
        key = (key ^ column) * _MIX
        key ^= key >> np.uint64(29)
    return (key >> np.uint64(64 - _BITS)).astype(np.int64), (key & np.uint64((1 << (62 - _TOKEN)) - 1)).astype(np.int64)
