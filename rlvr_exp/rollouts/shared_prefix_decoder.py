"""Decoding groups with their prompts computed and stored once; see rlvr_exp.rollouts.shared_prefix_cache.

Support is tried on the model itself once, with a few tokens. An architecture's declarations are not enough: a model that computes its attention in another way, or drops an argument on
the way to it, would sample from a distribution other than the trained one.

Whether a token has the same bits whatever is computed with it: tried on the model itself, on the machine at hand.

It rests on what rlvr_exp.rollouts.shared_prefix_cache and oneDNN's linear layers do with more rows and more columns, which no
library promises. Where it does not hold nothing is guessed (rlvr_exp.rollouts.drafts).
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from weakref import WeakKeyDictionary

import numpy as np
import torch
from transformers import PreTrainedModel

from rlvr_exp.models.onednn_linear import onednn_inference
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix
from rlvr_exp.rollouts.plain_forward import ROPES, is_plain, plain_forward, rope_type
from rlvr_exp.rollouts.sampling_params import Logits
from rlvr_exp.rollouts.shared_prefix_cache import EXACT, NAME, CannotGroup, SharedPrefixCache

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


TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
"""The largest allowed mean difference of log-probabilities by dtype; ROUGH for all other dtypes."""
ROUGH = 0.1
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
    """Why the model is not supported; empty where it is."""
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
    first = max(0, min(3, model.config.vocab_size - 12))
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


SHORTEST = 50
"""Tokens of a completion that the trial needs."""
LAYERS = 4
"""Layers of a plain model that are tried: all of SmolLM2's 30 took as long as a batch of completions."""
LAST = 8
"""Tokens at the end of each completion whose logits are compared."""
_EXACT: WeakKeyDictionary[PreTrainedModel, dict[tuple, bool]] = WeakKeyDictionary()


def is_exact(model: PreTrainedModel) -> bool:
    """Whether SharedPrefixDecoder computes tokens of prompts and of completions with the same bits in any company. Tried once
    for each dtype, forward pass and number of threads."""
    known = _EXACT.setdefault(model, {})
    key = model.dtype, is_plain(model), torch.get_num_threads()
    if key not in known:
        known[key] = model.device.type == "cpu" and rope_type(model) in ROPES and _same_bits(_shortened(model))
    return known[key]


def _shortened(model: PreTrainedModel) -> PreTrainedModel:
    """A plain model with its first LAYERS layers alone, since the products of all layers have the same shapes; others whole."""
    if not is_plain(model):
        return model
    body, short = copy(model.model), copy(model)
    body._modules = {**body._modules, "layers": body.layers[:LAYERS]}
    short._modules = {**short._modules, "model": body}
    return short


@torch.inference_mode()
def _same_bits(model: PreTrainedModel) -> bool:
    """Four completions over more than one part of columns: in passes of equal shares, in passes of uneven ones and token by
    token at the end, and the first with its prompt alone. No pass has more than 64 tokens, whose logits take memory."""
    size = min(EXACT + 6, _longest(model) // 2)
    if size < SHORTEST:
        return False
    generator = torch.Generator().manual_seed(0)
    lengths = [min(length, _longest(model) - size) for length in (EXACT + 5, EXACT + 58, 10, 5)]
    prompts = [torch.randint(model.config.vocab_size, (n,), generator=generator).tolist() for n in lengths]
    tokens = torch.randint(model.config.vocab_size, (4, size), generator=generator).numpy()
    try:
        even = _last_logits(model, prompts, tokens, [16, 16, 16, 16])
        uneven = _last_logits(model, prompts, tokens, [24, 9, 16, 5], singly=LAST)
        alone = _last_logits(model, prompts[:1], tokens[:1], [40])
    except (CannotGroup, TypeError):  # TypeError: an argument that its forward pass does not know
        return False
    return torch.equal(even, uneven) and torch.equal(even[:1], alone)


def _longest(model: PreTrainedModel) -> int:
    """Tokens of a sequence of the trial: within the model's positions and its sliding window."""
    limits = (getattr(model.config, name, None) for name in ("max_position_embeddings", "sliding_window"))
    return min(limit for limit in (*limits, 4 * EXACT) if limit)


def _last_logits(
    model: PreTrainedModel, prompts: list[list[int]], tokens: np.ndarray, each: list[int], singly: int = 0
) -> torch.Tensor:
    """(completions, LAST, vocabulary) behind the last tokens of one completion of each prompt, of which a pass takes up to
    `each`, and one where no more than `singly` are left."""
    count, size = tokens.shape
    decoder = SharedPrefixDecoder(model, prompts, np.arange(count), size)
    found: list[list[torch.Tensor]] = [[] for _ in prompts]
    fed = np.zeros(count, dtype=np.int64)
    with decoder.computing():
        decoder.prefill()
        while (live := np.flatnonzero(fed < size)).size:
            left = (size - fed)[live]
            counts = np.where(left <= singly, 1, np.minimum(np.array(each)[live], np.maximum(left - singly, 1)))
            columns = np.minimum(fed[live, None] + np.arange(counts.max()), size - 1)
            logits = decoder.step(live, tokens[live[:, None], columns], counts).of_tokens()
            for i, own in zip(live, logits.split(counts.tolist()), strict=True):
                found[i] = [torch.cat([*found[i], own])[-LAST:].clone()]
            fed[live] += counts
    return torch.stack([own[0] for own in found])
