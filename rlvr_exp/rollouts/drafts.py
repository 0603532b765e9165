"""Guesses of a completion's next tokens, so that one forward pass can yield several.

A guess costs a row of the pass and decides nothing: each position is drawn from its own logits and its own random number,
and a guess counts where it is what was drawn (speculative decoding, Leviathan et al. 2023, with the draws of plain sampling
in place of its rejection step). So tokens and log-probabilities are those of sampling without guesses, bit for bit where
the pass computes a token alike in any company (`exact` in rlvr_exp.rollouts.shared_prefix_support).

Guesses are looked up by the tokens before (n-grams): first among those of the same prompt and its other completions, then
among all that this model has sampled in this process. How many a pass takes follows from what passes cost and from how many
guesses were right lately; it may differ from run to run, and the completions do not.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from torch import nn

ORDERS = (4, 2, 1)
"""How many tokens before are looked up, the first that is known counts."""
MOST = 6
"""The most guesses of a completion in a pass."""
REACH = max(ORDERS)
"""Tokens that are looked back on."""
_BITS = 18
_TOKEN = 24
"""Bits of an entry that hold the token; the others say for which tokens it stands."""
_ROOM = 1 << _BITS
_MIX = np.uint64(0x9E3779B97F4A7C15)
_OF_MODEL: WeakKeyDictionary[nn.Module, "Drafts"] = WeakKeyDictionary()


class Drafts:
    """What is remembered of a model's completions, and of what guessing brought."""

    def __init__(self) -> None:
        self._entries = np.full((len(ORDERS), _ROOM), -1, dtype=np.int64)
        self._salt = 0
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
        inside = np.concatenate([np.arange(-REACH, len(prompt)) for prompt in prompts]) > 0
        ends = np.flatnonzero(inside)
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

    def guess(self, before: np.ndarray, prompts: np.ndarray, most: np.ndarray) -> np.ndarray:
        """(rows, depth) the tokens that may follow; -1 behind the last guess of a row, of which there are at most `most`."""
        found = np.full((len(before), int(most.max(initial=0))), -1)
        for depth in range(found.shape[1]):
            token = self._next(before, prompts)
            token[most <= depth] = -1
            if depth:
                token[found[:, depth - 1] < 0] = -1
            found[:, depth] = token
            if (token < 0).all():
                break
            before = np.concatenate([before[:, 1:], token[:, None]], axis=1)
        return found

    def _next(self, before: np.ndarray, prompts: np.ndarray) -> np.ndarray:
        token = np.full(len(before), -1)
        for order, entries in zip(ORDERS, self._entries, strict=True):
            for owner in (prompts, np.zeros_like(prompts)):
                place, tag = _address(before[:, -order:], owner)
                entry = entries[place]
                token = np.where((token < 0) & (entry >> _TOKEN == tag), entry & ((1 << _TOKEN) - 1), token)
        return token

    def _learn(self, before: np.ndarray, tokens: np.ndarray, owners: np.ndarray) -> None:
        for order, entries in zip(ORDERS, self._entries, strict=True):
            place, tag = _address(before[:, -order:], owners)
            entries[place] = tag << _TOKEN | tokens


class Pace:
    """What a pass costs by its tokens, and how often guesses are right; older observations count less."""

    def __init__(self) -> None:
        self._sums = np.zeros(5)
        self._right = 0.5 ** np.arange(1, MOST + 1) * 20
        self._tried = np.full(MOST, 20.0)

    def choose(self, rows: int) -> int:
        """How many guesses a completion may have in a pass of `rows` completions: most tokens a second."""
        fixed, each = self._cost()
        right = np.concatenate([[1.0], 1.0 + np.cumsum(np.cumprod(self._right / self._tried))])
        return int(np.argmax(right / (fixed + each * rows * np.arange(1, MOST + 2))))

    def observe(self, tokens: int, seconds: float, guesses: np.ndarray, right: np.ndarray) -> None:
        """A pass of `tokens` tokens.

        Args:
            guesses: (completions,) how many each had, and how many of the first were `right`.
        """
        self._sums = 0.98 * self._sums + np.array([1, tokens, tokens**2, seconds, seconds * tokens])
        for depth in range(int(guesses.max(initial=0))):
            tried = (guesses > depth) & (right >= depth)
            self._tried[depth] = 0.98 * self._tried[depth] + tried.sum()
            self._right[depth] = 0.98 * self._right[depth] + (tried & (right > depth)).sum()

    def _cost(self) -> tuple[float, float]:
        """Seconds of a pass, and of each token in it: least squares; 1 to 1/32 until passes of several sizes were seen."""
        count, tokens, squares, seconds, products = self._sums
        spread = count * squares - tokens**2
        if count > 0 and spread > 0.01 * tokens**2:
            each = (count * products - tokens * seconds) / spread
            fixed = (seconds - each * tokens) / count
            if each > 0 and fixed > 0:
                return fixed, each
        return 1.0, 1 / 32


def _address(before: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of an n-gram's entry, and a tag that tells it from others there."""
    key = owners * np.uint64(0xD6E8FEB86659FD93)
    for column in before.T.astype(np.uint64):
        key = (key ^ column) * _MIX
        key ^= key >> np.uint64(29)
    return (key >> np.uint64(64 - _BITS)).astype(np.int64), (key & np.uint64((1 << (62 - _TOKEN)) - 1)).astype(np.int64)
