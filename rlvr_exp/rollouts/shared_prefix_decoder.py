"""Decoders: logits of the next token, for prompts and then for completions as they grow.

`SharedPrefixDecoder` computes and stores a prompt once (rlvr_exp.rollouts.shared_prefix_cache). Its support is tried on the
model itself, once, with a few tokens. An architecture's declarations are not enough: a model that computes its attention
in another way, or drops an argument on the way to it, would sample from a distribution other than the trained one.

`RowDecoder` serves the other architectures with one row per completion: state-space and sliding-window layers, attention
sinks. It computes prompts once and then repeats their part of the cache.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.nn.functional import rms_norm
from transformers import DynamicCache, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from rlvr_exp.models.adapters import adapters_cast
from rlvr_exp.models.onednn_linear import onednn_inference
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix
from rlvr_exp.rollouts.plain_forward import plain_forward
from rlvr_exp.rollouts.sampling_params import Logits
from rlvr_exp.rollouts.shared_prefix_cache import NAME, CannotGroup, SharedPrefixCache

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
        """The context of the passes."""
        return nullcontext() if self._plain is not None else sampling_layers(self._model)

    def prefill(self, first: int = 0, last: int | None = None) -> Logits:
        """Behind prompts first to last - 1, which follow those before (all at once, if they have begun): of each of their
        completions."""
        last = len(self._prompts) if last is None else last
        self.cache.admit(first, last, self._begun[first:last])
        if self._begun:
            return self._go_on()
        rows = self._owner[(self._owner >= first) & (self._owner < last)] - first
        return Logits(torch.cat([self._prefill(*each) for each in self._chunks(first, last)]), rows)

    def step(self, live: np.ndarray, fed: np.ndarray, counts: np.ndarray | None = None) -> Logits:
        """After more tokens of each completion in `live`, ascending: the first `counts[i]` of `fed[i]`, all of them if no
        counts are given."""
        counts = np.full(len(live), fed.shape[1]) if counts is None else counts
        tokens, positions, begins = self.cache.step(live, fed, counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        logits = self._forward(torch.from_numpy(tokens), torch.from_numpy(positions))
        return Logits(logits, np.repeat(begins, counts) + offset)

    def kept(self, completion: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """As SharedPrefixCache.kept."""
        return self.cache.kept(completion)

    def _go_on(self) -> Logits:
        """Behind the prompts, all of them. Only the tokens that were not begun are computed, fed like the tokens of a completion."""
        rests = [prompt[length:] for prompt, length in zip(self._prompts, self._lengths, strict=True)]
        counts = np.array([len(rest) for rest in rests])[self._owner]
        fed = np.zeros((len(self._owner), counts.max()), dtype=np.int64)
        for row, place in enumerate(self._owner):
            fed[row, : counts[row]] = rests[place]
        tokens, positions, begins = self.cache.step(np.arange(len(self._owner)), fed, counts)
        last, rows = np.unique(begins + counts - 1, return_inverse=True)
        wanted = torch.from_numpy(last)
        logits = self._forward(torch.from_numpy(tokens), torch.from_numpy(positions), wanted)
        return Logits(logits, rows)

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
                input_ids=tokens.to(device, non_blocking=True)[None],
                position_ids=positions.to(device, non_blocking=True)[None],
                use_cache=False,
                logits_to_keep=0 if wanted is None else wanted,
                group_cache=self.cache,
            )
        return output.logits[0]

    def _chunks(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        while first < end:
            fitting = int(np.searchsorted(np.cumsum(self._lengths[first:end]), PREFILL_TOKENS, side="right"))
            last = first + max(1, fitting)
            yield first, last
            first = last


@contextmanager
def sampling_layers(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block single layers compute the same with fewer operations, without gradients."""
    with onednn_inference(model), adapters_cast(model), fused_norms(model):
        yield


@contextmanager
def fused_norms(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block norms that compute as Llama's use one fused kernel of PyTorch and a product, instead of eight kernels. The
    rounding is the same."""
    found = [one for one in model.modules() if _is_llama_norm(one)]
    for norm in found:
        norm.forward = partial(_normed, norm)
    try:
        yield
    finally:
        for norm in found:
            del norm.forward


def _is_llama_norm(module: nn.Module) -> bool:
    """Whether its forward pass has the same code; Transformers copies it for each architecture."""
    return _code(type(module)) == _code(LlamaRMSNorm) and "forward" not in vars(module)


def _code(kind: type[nn.Module]) -> tuple[Any, ...]:
    code = getattr(kind.forward, "__code__", None)
    return (code.co_code, code.co_names, code.co_consts) if code else ()


def _normed(norm: Any, x: torch.Tensor) -> torch.Tensor:
    return norm.weight * rms_norm(x, x.shape[-1:], None, norm.variance_epsilon)


@contextmanager
def grouped_attention(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block the model uses the attention of rlvr_exp.rollouts.shared_prefix_cache."""
    own = model.config._attn_implementation
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = own


TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
"""The largest allowed mean difference of log-probabilities by dtype; ROUGH for all other dtypes."""
ROUGH = 0.3
"""SmolLM2 differs by 0.05 to 0.16 in bfloat16, by rounding."""
_KNOWN: WeakKeyDictionary[PreTrainedModel, dict[int, bool]] = WeakKeyDictionary()


def supports_shared_prefix(model: PreTrainedModel, longest: int) -> bool:
    """Whether SharedPrefixDecoder supports this model for sequences up to `longest` tokens; warns once about a model that
    it does not support."""
    known = _KNOWN.setdefault(model, {})
    window = _window(model, longest)
    if window not in known:
        reason = _reason(model, longest)
        known[window] = not reason
        if reason:
            text = f"{type(model).__name__} is sampled row by row, slower and with more memory: {reason}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    return known[window]


def _window(model: PreTrainedModel, longest: int) -> int:
    """0 for sequences within the sliding window, which has no effect on them; otherwise 1."""
    window = getattr(model.config, "sliding_window", None)
    return 0 if window is None or longest <= window else 1


def _reason(model: PreTrainedModel, longest: int) -> str:
    """Why the model is not supported; empty if it is."""
    config = model.config
    if not type(model)._supports_attention_backend or config.get_text_config() is not config:
        return "its attention is not exchangeable"
    every = "sliding_attention" if getattr(config, "sliding_window", None) else "full_attention"
    kinds = set(getattr(config, "layer_types", None) or [every]) - {"full_attention"}
    if kinds - ({"sliding_attention"} if not _window(model, longest) else set()):
        return f"it has layers of kind {', '.join(sorted(kinds))}"
    try:
        gap = _gap(model)
    except (CannotGroup, TypeError) as fault:  # TypeError: an argument that its forward pass does not know
        return str(fault)
    allowed = TOLERANCE.get(model.dtype, ROUGH)
    return "" if gap <= allowed else f"log-probabilities would be off by {gap:.2g}"


@torch.inference_mode()
def _gap(model: PreTrainedModel) -> float:
    """Mean difference of log-probabilities from those of plain passes, for two prompts with two completions each."""
    # From the middle of the vocabulary: behind special tokens alone, rounding to bfloat16 moves SmolLM2's log-probabilities by 1.
    first = max(0, model.config.vocab_size // 2 - 6)
    prompts = [list(range(first, first + 7)), list(range(first + 2, first + 6))]
    tokens = np.array([[1, 8], [5, 3], [4, 9], [10, 6]]) + first
    owner, live = np.array([0, 0, 1, 1]), np.arange(4)
    decoder = SharedPrefixDecoder(model, prompts, owner, 2)
    with decoder.computing():
        decoder.prefill()
        for place in range(2):
            logits = decoder.step(live, tokens[:, place : place + 1]).of_tokens()
    rows = [prompts[owner[i]] + tokens[i].tolist() for i in live]
    plain = [model(input_ids=torch.tensor([row], device=model.device)).logits[0, -1] for row in rows]
    return (logits.float().log_softmax(-1) - torch.stack(plain).float().log_softmax(-1)).abs().mean().item()


class RowDecoder:
    """The fallback with the interface of SharedPrefixDecoder."""

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], owner: np.ndarray, limit: int):
        self._model, self._prompts, self._owner = model, prompts, owner
        self._cache = DynamicCache(config=model.config)
        self._held = np.arange(len(owner))
        """(rows,) the completion that stands in each row."""
        width = max(len(prompt) for prompt in prompts)
        self._lengths = np.array([len(prompt) for prompt in prompts])
        self._seen = torch.from_numpy(np.arange(width) >= (width - self._lengths)[:, None]).to(model.device).long()

    def computing(self) -> AbstractContextManager[None]:
        """The context of the passes."""
        return sampling_layers(self._model)

    def prefill(self, first: int = 0, last: int | None = None) -> Logits:
        """Behind the prompts, all of them."""
        width = self._seen.shape[1]
        ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in self._prompts])
        logits = self._forward(ids, (self._seen.cumsum(1) - 1).clamp(min=0))
        self._select(self._owner)
        return Logits(logits, self._owner)

    def step(self, live: np.ndarray, fed: np.ndarray, counts: np.ndarray | None = None) -> Logits:
        """After one more token of each completion in `live`: `fed` has one column."""
        if len(live) < len(self._held):
            self._select(np.searchsorted(self._held, live))
            self._held = live
        positions = self._seen.sum(1, keepdim=True)
        self._seen = torch.nn.functional.pad(self._seen, (0, 1), value=1)
        return Logits(self._forward(torch.from_numpy(fed), positions), np.arange(len(live)))

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
