"""Keys and values of turns that later turns go on from, so that only the rest of a prompt is computed.

They hold for the weights that they were computed with: those of one run of episodes. A turn is looked up for the turn that it is the
parent of, and for no other, so that the numbers of a chain depend on no other chain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Tokens = tuple[int, ...]
Layers = Sequence[tuple[torch.Tensor, torch.Tensor]]
ROOM = 2**31
"""Bytes of a wave beyond which no more is kept; the rest is computed again."""


@dataclass(frozen=True)
class KeptPrefix:
    """The first tokens of a prompt, and of each layer their keys and values, (heads, tokens, dimension)."""

    tokens: Tokens
    layers: Layers

    def cut(self, length: int) -> "KeptPrefix":
        return KeptPrefix(
            self.tokens[:length], [(keys[:, :length], values[:, :length]) for keys, values in self.layers]
        )


@dataclass(frozen=True)
class Turns:
    """Keys and values of the turns before a batch of prompts, and the store for the turns that follow."""

    kept: "KeptPrefixes | None" = None
    begun: Sequence[KeptPrefix] = ()
    """The first tokens of each prompt that have been computed already; empty for none."""


NO_TURNS = Turns()


class KeptPrefixes:
    """Those of the turns of the last wave."""

    def __init__(self) -> None:
        self._kept: dict[Tokens, KeptPrefix] = {}
        self._size = 0
        self._last: dict[Tokens, KeptPrefix] = {}

    def next_wave(self) -> None:
        """Begin a new wave of turns; those of the last one are still found."""
        self._last, self._kept, self._size = self._kept, {}, 0

    def keep(self, tokens: Tokens, layers: Callable[[], Layers]) -> None:
        """`layers`: called if nothing is kept of these tokens yet."""
        if tokens in self._kept or self._size > ROOM:
            return
        prefix = self._kept[tokens] = KeptPrefix(tokens, layers())
        self._size += sum(part.numel() * part.element_size() for layer in prefix.layers for part in layer)

    def of(self, prompt: Tokens, follows: Tokens) -> KeptPrefix | None:
        """The shared beginning of a prompt and the turn that it follows, short of its last token, which has to be computed.

        Args:
            follows: the tokens of that turn, as it was kept; empty: there is none.
        """
        kept = self._last.get(follows)
        if kept is None:
            return None
        shared = next(
            (place for place, (a, b) in enumerate(zip(prompt, follows, strict=False)) if a != b),
            min(len(prompt), len(follows)),
        )
        shared = min(shared, len(prompt) - 1)
        return kept.cut(shared) if shared else None
