"""Decoding with one row per completion, for architectures that cannot share a prefix: state-space and sliding-window
layers, attention sinks. Prompts are computed once; their part of the cache is then repeated."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from rlvr_exp.models.onednn_linear import onednn_inference
from rlvr_exp.rollouts.sampling_params import Logits


class RowDecoder:
    """The fallback for rlvr_exp.rollouts.shared_prefix_decoder.SharedPrefixDecoder, with the same interface."""

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], owner: np.ndarray, limit: int):
        self._model, self._prompts, self._owner = model, prompts, owner
        self._cache = DynamicCache(config=model.config)
        self._held = np.arange(len(owner))
        """(rows,) the completion that stands in each row."""
        width = max(len(prompt) for prompt in prompts)
        self._lengths = np.array([len(prompt) for prompt in prompts])
        self._seen = torch.from_numpy(np.arange(width) >= (width - self._lengths)[:, None]).to(model.device).long()

    def computing(self) -> AbstractContextManager[None]:
        """In which the passes are computed."""
        return onednn_inference(self._model)

    def prefill(self) -> Logits:
        width = self._seen.shape[1]
        ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in self._prompts])
        logits = self._forward(ids, (self._seen.cumsum(1) - 1).clamp(min=0))
        self._select(self._owner)
        return Logits(logits, self._owner, len(logits))

    def step(self, live: np.ndarray, fed: np.ndarray, counts: np.ndarray | None = None) -> Logits:
        """After one more token of each completion in `live`: `fed` has one column."""
        if len(live) < len(self._held):
            self._select(np.searchsorted(self._held, live))
            self._held = live
        positions = self._seen.sum(1, keepdim=True)
        self._seen = torch.nn.functional.pad(self._seen, (0, 1), value=1)
        return Logits(self._forward(torch.from_numpy(fed), positions), np.arange(len(live)), len(live))

    def _select(self, rows: np.ndarray) -> None:
        kept = torch.from_numpy(rows)
        self._cache.batch_select_indices(kept)
        self._seen = self._seen[kept.to(self._seen.device)]

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        output = self._model(
            input_ids=ids.to(self._model.device),
            attention_mask=self._seen,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]
