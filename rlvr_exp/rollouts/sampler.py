"""The sampling loop for a local engine: several completions for each prompt, the prompt computed once.

Completions leave the batch the moment they end, and are yielded while the others are still being sampled; further prompts
take their room. The random number of every token comes from the caller's key and the token's position; no global generator
is read or advanced, so with equal weights the rest of the batch does not matter.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, KeptPrefix, Turns
from rlvr_exp.rollouts.sampling_params import (
    FinishedSample,
    Logits,
    SampleKey,
    SamplingParams,
    StopStringMatcher,
    draw,
)
from rlvr_exp.rollouts.shared_prefix_decoder import RowDecoder, SharedPrefixDecoder, supports_shared_prefix

REFILL = 0.25
"""Further prompts begin once their completions would be so large a share of the batch. They are a block of their own in the cache,
with its own launches in each layer."""


def sample_groups(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[Sequence[SampleKey]],
    sampling: SamplingParams,
    turns: Turns = NO_TURNS,
) -> list[list[TokenSample]]:
    """All completions of each prompt, in the order of its keys; see `stream`."""
    found = {(one.prompt, one.sample): one.sampled for one in stream(model, prompts, keys, sampling, turns)}
    return [[found[place, sample] for sample in range(len(wanted))] for place, wanted in enumerate(keys)]


def stream(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[Sequence[SampleKey]],
    sampling: SamplingParams,
    turns: Turns = NO_TURNS,
) -> Iterator[FinishedSample]:
    """Sample `len(keys[p])` completions for each prompt p, at most `sampling.batch_size` at once but those of a prompt together, and
    yield each as soon as it ends.

    Args:
        model: a causal language model, or a wrapper around one that leaves its modules in place (PEFT).
        prompts: token ids of each prompt, unpadded, at least one token long; best in the order of their lengths.
        keys: the random key of each sample of each prompt.
    """
    inner = causal_model(model)
    was_training = inner.training
    inner.eval()
    try:
        for own in _batches(inner, prompts, keys, sampling, turns):
            with torch.inference_mode():
                batch = SamplingBatch(inner, prompts[own], keys[own], sampling, Turns(turns.kept, turns.begun[own]))
            with batch.computing():
                while batch.going:
                    with torch.inference_mode():
                        finished = batch.step()
                    for one in finished:
                        yield replace(one, prompt=own.start + one.prompt)
    finally:
        inner.train(was_training)


def _batches(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[Sequence[SampleKey]],
    sampling: SamplingParams,
    turns: Turns,
) -> Iterator[slice]:
    """The prompts of each batch: all if it can be refilled, otherwise as many as fit, at least one."""
    if prompts and not turns.begun and supports_shared_prefix(model, max(map(len, prompts)) + sampling.max_new_tokens):
        yield slice(0, len(prompts))
        return
    sizes = np.cumsum([0, *map(len, keys)])
    first = 0
    while first < len(prompts):
        last = int(np.searchsorted(sizes, sizes[first] + sampling.batch_size, side="right")) - 1
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


def score(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[Sequence[int]]],
    temperature: float,
) -> torch.Tensor:
    """(completions, tokens) log-probabilities of given completions, computed the way that sampling computes them.

    Args:
        completions: for each prompt its completions as token ids, all of one length.
    """
    inner = causal_model(model)
    was_training = inner.training
    inner.eval()
    owner = np.repeat(np.arange(len(prompts)), [len(row) for row in completions])
    fed = np.array([ids for row in completions for ids in row])
    tokens = torch.from_numpy(fed).to(inner.device)
    live, scores = np.arange(len(owner)), []
    try:
        steps = decoder(inner, prompts, owner, tokens.shape[1])
        with steps.computing(), torch.inference_mode():
            for place in range(tokens.shape[1]):
                found = steps.step(live, fed[:, place - 1 : place]) if place else steps.prefill()
                logits = found.of_tokens()
                chances = (logits.float() / temperature).log_softmax(-1)
                scores.append(chances.gather(-1, tokens[:, place : place + 1].to(chances.device)))
    finally:
        inner.train(was_training)
    return torch.cat(scores, dim=1).cpu()


def causal_model(model: nn.Module) -> PreTrainedModel:
    """The language model inside its wrappers."""
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            return module
    raise TypeError(f"no Transformers model in a {type(model).__name__}: the sampler has nothing to run")


def decoder(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    owner: np.ndarray,
    limit: int,
    begun: Sequence[KeptPrefix] = (),
) -> SharedPrefixDecoder | RowDecoder:
    """The decoder of `owner`'s completions, of at most `limit` tokens each. `begun`: as SharedPrefixDecoder, which kept them."""
    if begun or supports_shared_prefix(model, max(map(len, prompts)) + limit):
        return SharedPrefixDecoder(model, prompts, owner, limit, begun)
    return RowDecoder(model, prompts, owner, limit)


class SamplingBatch:
    """Completion i is sample `sample[i]` of prompt `owner[i]`. Prompts begin in their order, as rows become free."""

    def __init__(
        self,
        model: PreTrainedModel,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[Sequence[SampleKey]],
        sampling: SamplingParams,
        turns: Turns = NO_TURNS,
    ):
        self._sampling, self._prompts, self._kept = sampling, prompts, turns.kept
        sizes, longest = np.array([len(row) for row in keys]), sampling.max_new_tokens
        self._owner = np.repeat(np.arange(len(prompts)), sizes)
        self._sample = np.concatenate([np.arange(size) for size in sizes])
        self._ends = np.cumsum(sizes)
        """(prompts,) the completion after the last of each"""
        self._columns = np.cumsum(np.array([len(prompt) for prompt in prompts]) + sizes * longest)
        """(prompts,) columns of the cache, up to and with those of each, at their longest"""
        group = int(sizes.max())
        self._planned = max(1, sampling.batch_size // group) * (sampling.planned_prompt + group * longest)
        """Columns of the cache in the memory plan."""
        self._uniforms = uniforms(keys, sampling.max_new_tokens)
        self._decoder = decoder(model, prompts, self._owner, sampling.max_new_tokens, turns.begun)
        self._begun = 0
        """Prompts that have begun."""
        self._live = np.zeros(0, dtype=np.int64)
        self._eos = np.array(sampling.eos_ids)
        self._closing = np.array(sampling.completion_check.tokens if sampling.completion_check else ())
        self._watchers: list[StopStringMatcher] = []
        if sampling.stop:
            assert sampling.decode is not None, "stop strings are compared with text"
            self._watchers = [StopStringMatcher(sampling.stop, sampling.decode) for _ in self._owner]
        self._known: dict[tuple[int, ...], bool] = {}
        """The domain's verdict on texts that may be complete; equal completions share it."""
        self._ids = np.full(self._uniforms.shape, -1)
        self._logprobs = np.zeros(self._ids.shape, dtype=np.float32)
        self._entropies = np.zeros(len(self._owner))
        """Of each completion, the sum over its tokens."""
        self._kept_token_ids: list[list[tuple[int, ...]]] = [[] for _ in self._owner]
        self._size = np.zeros(len(self._owner), dtype=np.int64)
        """Tokens of each completion."""

    def computing(self) -> AbstractContextManager[None]:
        """The context of the passes."""
        return self._decoder.computing()

    @property
    def going(self) -> bool:
        return len(self._live) > 0 or self._begun < len(self._prompts)

    def step(self) -> list[FinishedSample]:
        """Begin further prompts if there is room, and draw the next token of each live completion; returns the completions that
        ended."""
        finished = []
        if last := self._fitting():
            first, self._begun = self._begun, last
            finished += self._draw(self._decoder.prefill(first, last), self._rows(first, last))
        if len(live := self._live):
            self._live = live[:0]
            finished += self._draw(self._decoder.step(live, self._ids[live, self._size[live] - 1, None]), live)
        return finished

    def _fitting(self) -> int:
        """The prompt before which those end that begin now; 0: none does."""
        begun, live = self._begun, len(self._live)
        if begun == len(self._prompts):
            return 0
        before, columns = (parts[begun - 1] if begun else 0 for parts in (self._ends, self._columns))
        last = int(np.searchsorted(self._ends, before + self._sampling.batch_size - live, side="right"))
        if self._sampling.planned_prompt:
            prompts = sum(len(self._prompts[place]) for place in np.unique(self._owner[self._live]))
            room = self._planned - prompts - live * self._sampling.max_new_tokens
            last = max(last, int(np.searchsorted(self._columns, columns + room, side="right")))
        if live == 0:
            return max(last, begun + 1)
        new = self._ends[last - 1] - before if last > begun else 0
        return last if new and new >= REFILL * (new + live) else 0

    def _rows(self, first: int, last: int) -> np.ndarray:
        """The completions of prompts first to last - 1."""
        return np.arange(self._ends[first - 1] if first else 0, self._ends[last - 1])

    def _draw(self, logits: Logits, rows: np.ndarray) -> list[FinishedSample]:
        """Draw the next token of these completions, and add those that go on to the live ones, before which they do not belong."""
        size = self._size[rows]
        numbers = torch.from_numpy(self._uniforms[rows, size])
        drawn = draw(logits.values, numbers, self._sampling.filters, torch.from_numpy(logits.rows))
        ids, self._logprobs[rows, size], entropies = drawn.fetch()
        self._ids[rows, size] = ids
        self._entropies[rows] += entropies
        for i, kept in zip(rows, drawn.kept_token_ids() or (), strict=False):
            self._kept_token_ids[i].append(kept)
        self._size[rows] += 1
        if self._sampling.watch is not None:
            self._sampling.watch.drew(len(rows))
        ended = np.isin(ids, self._eos)
        for place, i in enumerate(rows if self._watchers else ()):
            ended[place] |= self._watchers[i].ends(int(ids[place]))
        for place in np.flatnonzero(np.isin(ids, self._closing)).tolist():
            i = rows[place]
            ended[place] |= self._is_complete(tuple(self._ids[i, : self._size[i]].tolist()))
        left = ended | (self._size[rows] == self._sampling.max_new_tokens)
        self._live = np.concatenate([self._live, rows[~left]])
        return [self._finished(i, bool(end)) for i, end in zip(rows[left], ended[left], strict=True)]

    def _is_complete(self, ids: tuple[int, ...]) -> bool:
        if ids not in self._known:
            self._known[ids] = self._sampling.completes(ids)
        return self._known[ids]

    def _finished(self, i: int, ended: bool) -> FinishedSample:
        """A completion that leaves the batch. Its keys and values are kept, except those of its last token, which were never
        computed."""
        size = int(self._size[i])
        ids, logprobs = self._ids[i, :size].tolist(), self._logprobs[i, :size].tolist()
        if self._kept is not None and isinstance(self._decoder, SharedPrefixDecoder):
            self._kept.keep((*self._prompts[self._owner[i]], *ids[:-1]), partial(self._decoder.kept, i))
        kept = tuple(self._kept_token_ids[i]) if self._sampling.filters.narrow else None
        sampled = TokenSample(tuple(ids), tuple(logprobs), not ended, kept, float(self._entropies[i]) / size)
        return FinishedSample(int(self._owner[i]), int(self._sample[i]), sampled)


def uniforms(keys: Sequence[Sequence[SampleKey]], length: int) -> np.ndarray:
    """(completions, length) random numbers, each from its key and position alone; NaN for greedy completions."""
    rows = [
        np.full(length, np.nan) if key is None else np.random.Generator(np.random.Philox(derive(*key))).random(length)
        for row in keys
        for key in row
    ]
    return np.asarray(rows, dtype=np.float64).reshape(-1, length)
