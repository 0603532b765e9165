"""The sampling loop for a local engine: several completions for each prompt, the prompt computed once.

Completions leave the batch the moment they end, and are yielded while the others are still being sampled. The random
number of every token comes from the caller's key and the token's position; no global generator is read or advanced
(DESIGN.md, "Determinism"), so with equal weights the rest of the batch does not matter.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.drafts import REACH, Drafts, Guesses
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, KeptPrefix, Turns
from rlvr_exp.rollouts.sampler_rows import RowDecoder
from rlvr_exp.rollouts.sampling_params import (
    FinishedSample,
    Logits,
    SampleKey,
    SamplingParams,
    StopStringMatcher,
    TokenDraw,
    draw,
)
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder, is_exact, supports_shared_prefix


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
    """Sample `len(keys[p])` completions for each prompt p, all in one batch, and yield each as soon as it ends.

    Args:
        model: a causal language model, or a wrapper around one that leaves its modules in place (PEFT).
        prompts: token ids of each prompt, unpadded, at least one token long.
        keys: the random key of each sample of each prompt.
    """
    inner = causal_model(model)
    was_training = inner.training
    inner.eval()
    try:
        with torch.inference_mode():
            batch = SamplingBatch(inner, prompts, keys, sampling, turns)
        with batch.computing():
            with torch.inference_mode():
                finished = batch.first()
            yield from finished
            while batch.going:
                with torch.inference_mode():
                    finished = batch.step()
                yield from finished
    finally:
        inner.train(was_training)


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
    """Completion i is sample `sample[i]` of prompt `owner[i]`."""

    def __init__(
        self,
        model: PreTrainedModel,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[Sequence[SampleKey]],
        sampling: SamplingParams,
        turns: Turns = NO_TURNS,
    ):
        self._sampling, self._prompts, self._kept = sampling, prompts, turns.kept
        self._owner = np.repeat(np.arange(len(prompts)), [len(row) for row in keys])
        self._sample = np.concatenate([np.arange(len(row)) for row in keys])
        self._uniforms = uniforms(keys, sampling.max_new_tokens)
        self._decoder = decoder(model, prompts, self._owner, sampling.max_new_tokens, turns.begun)
        self._live = np.arange(len(self._owner))
        self._eos = np.array(sampling.eos_ids)
        self._closing = np.array(sampling.completion_check.tokens if sampling.completion_check else ())
        self._watchers: list[StopStringMatcher] = []
        if sampling.stop:
            assert sampling.decode is not None, "stop strings are compared with text"
            self._watchers = [StopStringMatcher(sampling.stop, sampling.decode) for _ in self._live]
        self._history = np.full((len(self._live), REACH + sampling.max_new_tokens), -1)
        """The last tokens of the prompt, then those of the completion."""
        self._ids = self._history[:, REACH:]
        self._known: dict[tuple[int, ...], bool] = {}
        self._logprobs = np.zeros(self._ids.shape, dtype=np.float32)
        self._entropies = np.zeros(len(self._live))
        """Of each completion, the sum over its tokens."""
        self._kept_token_ids: list[list[tuple[int, ...]]] = [[] for _ in self._live]
        self._drawn = np.zeros(len(self._live), dtype=np.int64)
        """(completions,) tokens drawn of each."""
        drafts = sampling.drafts > 0 and isinstance(self._decoder, SharedPrefixDecoder) and is_exact(model)
        self._drafts = Drafts.of(model) if drafts else None
        if self._drafts is not None:
            self._begin_drafts(self._drafts, prompts)

    def computing(self) -> AbstractContextManager[None]:
        """In which the passes are computed."""
        return self._decoder.computing()

    @property
    def going(self) -> bool:
        return len(self._live) > 0

    def first(self) -> list[FinishedSample]:
        """Draw the first token of each completion; returns the completions that ended with it."""
        self._draw(self._decoder.prefill(), np.zeros((len(self._live), 0), dtype=np.int64))
        return self._finish()

    def step(self) -> list[FinishedSample]:
        """Draw the next token of each live completion, and those behind it that were guessed; returns the completions that
        ended."""
        began, live = time.perf_counter(), self._live
        guesses = self._guess()
        counts = 1 + (guesses.tokens >= 0).sum(1)
        fed = np.concatenate([self._ids[live, self._drawn[live] - 1, None], guesses.tokens], axis=1)
        logits = self._decoder.step(live, fed, counts)
        taken = self._draw(logits, guesses.tokens)
        if self._drafts is not None and isinstance(self._decoder, SharedPrefixDecoder):
            self._decoder.forget(live, counts - taken)
            self._drafts.observe(guesses, taken - 1)
            self._sequences = logits.sequences
            slots = logits.sequences * fed.shape[1]
            self._drafts.pace.observe(logits.sequences, slots, time.perf_counter() - began)
        return self._finish()

    def _begin_drafts(self, drafts: Drafts, prompts: Sequence[Sequence[int]]) -> None:
        for row, place in enumerate(self._owner.tolist()):
            tail = prompts[place][-REACH:]
            self._history[row, REACH - len(tail) : REACH] = tail
        self._own = drafts.begin(prompts)[self._owner]
        self._sequences = len(prompts)

    def _guess(self) -> Guesses:
        """Of each live completion, what may follow its last token."""
        live, drawn = self._live, self._drawn[self._live]
        if self._drafts is None:
            return Guesses(*np.zeros((2, len(live), 0), dtype=np.int64))
        before = self._history[live[:, None], drawn[:, None] + np.arange(REACH)]
        most = np.minimum(self._sampling.drafts, self._sampling.max_new_tokens - drawn - 1)
        return self._drafts.guess(before, self._own[live], most, self._drafts.pace.least(self._sequences))

    def _draw(self, logits: Logits, guesses: np.ndarray) -> np.ndarray:
        """Draw from the logits behind each live completion's last token and behind each of its guesses, and keep the draws
        that follow right guesses; returns how many these are."""
        live, before = self._live, self._drawn[self._live]
        counts = 1 + (guesses >= 0).sum(1)
        start = np.cumsum(counts) - counts
        offset = np.arange(counts.sum()) - np.repeat(start, counts)
        numbers = self._uniforms[np.repeat(live, counts), np.repeat(before, counts) + offset]
        device = logits.values.device
        numbers, rows = torch.from_numpy(numbers).to(device), torch.from_numpy(logits.rows).to(device)
        drawn = _Drawn(draw(logits.values, numbers, self._sampling.filters, rows))
        self._ended = np.zeros(len(live), dtype=bool)
        rows = np.arange(len(live))
        for depth in range(guesses.shape[1] + 1):
            self._record(rows, drawn, start[rows] + depth)
            if depth == guesses.shape[1]:
                break
            rows = rows[(guesses[rows, depth] == drawn.ids[start[rows] + depth]) & ~self._ended[rows]]
        taken = self._drawn[live] - before
        if self._sampling.watch is not None:
            self._sampling.watch.drew(int(taken.sum()))
        if self._drafts is not None:
            self._remember(
                self._drafts,
                np.repeat(live, taken),
                np.repeat(self._drawn[live] - np.cumsum(taken), taken) + np.arange(taken.sum()),
            )
        return taken

    def _remember(self, drafts: Drafts, rows: np.ndarray, columns: np.ndarray) -> None:
        before = self._history[rows[:, None], columns[:, None] + np.arange(REACH)]
        drafts.learn(before, self._ids[rows, columns], self._own[rows])

    def _record(self, rows: np.ndarray, drawn: "_Drawn", places: np.ndarray) -> None:
        """Record the draws at `places` as the next tokens of the live completions `rows`."""
        who = self._live[rows]
        ids, columns = drawn.ids[places], self._drawn[who]
        self._ids[who, columns] = ids
        self._logprobs[who, columns] = drawn.logprobs[places]
        self._entropies[who] += drawn.entropies[places]
        if drawn.kept is not None:
            for i, place in zip(who, places, strict=True):
                self._kept_token_ids[i].append(drawn.kept[place])
        self._drawn[who] += 1
        ended = np.isin(ids, self._eos)
        if self._watchers:
            ended |= np.array(
                [self._watchers[i].ends(int(token)) for i, token in zip(who, ids, strict=True)], dtype=bool
            )
        self._ended[rows] = ended if self._sampling.completion_check is None else ended | self._complete(who, ids)

    def _complete(self, who: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Which completions their domain calls complete, among those whose last token can complete them."""
        due = np.isin(ids, self._closing)
        for place in np.flatnonzero(due):
            i = who[place]
            due[place] = self._finished_text(tuple(self._ids[i, : self._drawn[i]].tolist()))
        return due

    def _finished_text(self, ids: tuple[int, ...]) -> bool:
        """The domain's word, which holds for all completions that are alike."""
        if ids not in self._known:
            self._known[ids] = self._sampling.completes(ids)
        return self._known[ids]

    def _finish(self) -> list[FinishedSample]:
        """The completions that ended with what was drawn; they leave the batch."""
        live, ended = self._live, self._ended
        left = ended | (self._drawn[live] == self._sampling.max_new_tokens)
        self._live = live[~left]
        for i in live[left]:
            self._keep(i)
        return [self._finished(i, bool(end)) for i, end in zip(live[left], ended[left], strict=True)]

    def _keep(self, i: int) -> None:
        """Keep the keys and values of a completion that has ended, and of its prompt; those of its last token were never computed."""
        kept = self._kept
        if kept is not None and isinstance(self._decoder, SharedPrefixDecoder):
            drawn = self._ids[i, : self._drawn[i] - 1].tolist()
            kept.keep((*self._prompts[self._owner[i]], *drawn), partial(self._decoder.kept, i))

    def _finished(self, i: int, ended: bool) -> FinishedSample:
        size = self._drawn[i]
        kept_token_ids = tuple(self._kept_token_ids[i]) if self._sampling.filters.narrow else None
        ids, logprobs = self._ids[i, :size], self._logprobs[i, :size]
        entropy = float(self._entropies[i]) / max(1, size)
        sampled = TokenSample(tuple(ids.tolist()), tuple(logprobs.tolist()), not ended, kept_token_ids, entropy)
        return FinishedSample(int(self._owner[i]), int(self._sample[i]), sampled)


class _Drawn:
    """The draws of a pass, on the host."""

    def __init__(self, drawn: TokenDraw):
        self.ids, self.logprobs = drawn.ids.cpu().numpy(), drawn.logprobs.cpu().numpy()
        self.entropies = drawn.entropies.cpu().numpy()
        self.kept = drawn.kept_token_ids()


def uniforms(keys: Sequence[Sequence[SampleKey]], length: int) -> np.ndarray:
    """(completions, length) random numbers, each from its key and position alone; NaN for greedy completions."""
    rows = [
        np.full(length, np.nan) if key is None else np.random.Generator(np.random.Philox(derive(*key))).random(length)
        for row in keys
        for key in row
    ]
    return np.asarray(rows, dtype=np.float64).reshape(-1, length)
