"""Decoding groups with their prompts computed and stored once; see rlvr_exp.rollouts.shared_prefix_cache."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from transformers import PreTrainedModel

from rlvr_exp.models.onednn_linear import onednn_inference
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix
from rlvr_exp.rollouts.logits import Logits
from rlvr_exp.rollouts.plain_forward import plain_forward
from rlvr_exp.rollouts.shared_prefix_cache import NAME, SharedPrefixCache

PREFILL_TOKENS = 2048
"""The most prompt tokens of a forward pass; a longer prompt gets its own pass."""


class SharedPrefixDecoder:
    """Logits of the next token, for the prompts and then for completions as they grow.

    Args:
        model: the causal language model itself, not a wrapper of it.
        owner: (completions,) the prompt of each completion, ascending.
        limit: the most tokens of a completion.
        begun: of each prompt its first tokens, which have been computed; not all of it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        prompts: Sequence[Sequence[int]],
        owner: np.ndarray,
        limit: int,
        begun: Sequence[KeptPrefix] = (),
    ):
        self._model, self._prompts, self._owner, self._begun = model, prompts, owner, begun
        self._lengths = np.array([len(one.tokens) for one in begun] or [len(prompt) for prompt in prompts])
        rest = max(map(len, prompts)) if begun else 0
        like = torch.empty(0, dtype=model.dtype, device=model.device)
        self.cache = SharedPrefixCache(self._lengths.tolist(), owner, rest + limit, like)
        self._plain = plain_forward(model, self.cache)

    def computing(self) -> AbstractContextManager[None]:
        """In which the passes are computed."""
        return nullcontext() if self._plain is not None else onednn_inference(self._model)

    def prefill(self) -> Logits:
        if self._begun:
            return self._go_on()
        return Logits(
            torch.cat([self._prefill(first, last) for first, last in self._chunks()]), self._owner, len(self._prompts)
        )

    def step(self, live: np.ndarray, fed: np.ndarray, counts: np.ndarray | None = None) -> Logits:
        """After more tokens of each completion in `live`, ascending: the first `counts[i]` of `fed[i]`, all of them where no
        counts are given."""
        counts = np.full(len(live), fed.shape[1]) if counts is None else counts
        tokens, positions, begins = self.cache.step(live, fed, counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        logits = self._forward(torch.from_numpy(tokens), torch.from_numpy(positions))
        return Logits(logits, np.repeat(begins, counts) + offset, len(np.unique(begins)))

    def forget(self, live: np.ndarray, counts: np.ndarray) -> None:
        """The last `counts[i]` tokens of each completion were no part of it."""
        self.cache.forget(live, counts)

    def kept(self, completion: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """As SharedPrefixCache.kept."""
        return self.cache.kept(completion)

    def _go_on(self) -> Logits:
        """Behind the prompts, of which only what was not begun is computed: it is fed as a completion's tokens are."""
        self.cache.load(self._begun)
        rests = [prompt[length:] for prompt, length in zip(self._prompts, self._lengths, strict=True)]
        counts = np.array([len(rest) for rest in rests])[self._owner]
        fed = np.zeros((len(self._owner), counts.max()), dtype=np.int64)
        for row, place in enumerate(self._owner):
            fed[row, : counts[row]] = rests[place]
        tokens, positions, begins = self.cache.step(np.arange(len(self._owner)), fed, counts)
        last, rows = np.unique(begins + counts - 1, return_inverse=True)
        wanted = torch.from_numpy(last)
        logits = self._forward(torch.from_numpy(tokens), torch.from_numpy(positions), wanted)
        return Logits(logits, rows, len(last))

    def _prefill(self, first: int, last: int) -> torch.Tensor:
        self.cache.prefill(first, last)
        lengths = self._lengths[first:last]
        tokens = torch.tensor([token for prompt in self._prompts[first:last] for token in prompt])
        positions = torch.from_numpy(np.concatenate([np.arange(length) for length in lengths]))
        return self._forward(tokens, positions, torch.from_numpy(np.cumsum(lengths) - 1))

    def _forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, wanted: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self._plain is not None:
            return self._plain(tokens, positions, wanted, whole=not self._begun)
        device = self._model.device
        with grouped_attention(self._model):
            output = self._model(
                input_ids=tokens.to(device)[None],
                position_ids=positions.to(device)[None],
                use_cache=False,
                logits_to_keep=0 if wanted is None else wanted,
                group_cache=self.cache,
            )
        return output.logits[0]

    def _chunks(self) -> Iterator[tuple[int, int]]:
        first = 0
        while first < len(self._lengths):
            fitting = int(np.searchsorted(np.cumsum(self._lengths[first:]), PREFILL_TOKENS, side="right"))
            last = first + max(1, fitting)
            yield first, last
            first = last


@contextmanager
def grouped_attention(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block the model uses the attention of rlvr_exp.rollouts.shared_prefix_cache."""
    own = model.config._attn_implementation
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = own
