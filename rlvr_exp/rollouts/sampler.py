"""The sampling loop for a local engine: several completions for each prompt, the prompt computed once.

Completions leave the batch the moment they end, and are yielded while the others are still being sampled. The random
number of every token comes from the caller's key and the token's position; no global generator is read or advanced
(DESIGN.md, "Determinism"), so with equal weights the rest of the batch does not matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from rlvr_exp.core.seeds import Key, derive
from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.models.onednn_linear import onednn_inference
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.draw import LogitFilters, TokenDraw, draw
from rlvr_exp.rollouts.sampler_rows import RowDecoder
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder
from rlvr_exp.rollouts.shared_prefix_support import supports_shared_prefix
from rlvr_exp.rollouts.stopping import CompletionCheck, Decode, StopStringMatcher
from rlvr_exp.tasks.base import Domain

SampleKey = Sequence[Key] | None
"""The random key of a completion, e.g. (run seed, "rollout", step, index, task id, sample); None: greedy."""


@dataclass(frozen=True)
class SamplingParams:
    """How completions are sampled and when they end."""

    filters: LogitFilters
    max_new_tokens: int
    eos_ids: tuple[int, ...]
    stop: tuple[str, ...] = ()
    """Texts that end a completion; they stay part of it."""
    decode: Decode | None = None
    """Token ids to text; needed for `stop`."""
    batch_size: int = 512
    """The most completions sampled at once; the completions of a prompt stay together."""
    completion_check: CompletionCheck | None = None
    """Ends a completion that the domain calls complete; it needs `decode`."""

    @classmethod
    def of(
        cls, options, policy: Policy, max_new_tokens: int, batch_size: int, domain: Domain | None = None
    ) -> "SamplingParams":
        """From the `algorithm` or the `evaluation` node (rlvr_exp.config.sampling.Drawing), for completions in a domain."""
        filters = LogitFilters(options.temperature, options.top_k, options.top_p, options.min_p)
        ends = (policy.eos_ids, tuple(options.stop), policy.decode)
        return cls(filters, max_new_tokens, *ends, batch_size, CompletionCheck.of(domain, policy))


@dataclass(frozen=True)
class FinishedSample:
    """A completion that has ended: sample `sample` of prompt `prompt`."""

    prompt: int
    sample: int
    sampled: TokenSample


def sample_groups(
    model: nn.Module, prompts: Sequence[Sequence[int]], keys: Sequence[Sequence[SampleKey]], sampling: SamplingParams
) -> list[list[TokenSample]]:
    """All completions of each prompt, in the order of its keys; see `stream`."""
    found = {(one.prompt, one.sample): one.sampled for one in stream(model, prompts, keys, sampling)}
    return [[found[place, sample] for sample in range(len(wanted))] for place, wanted in enumerate(keys)]


def stream(
    model: nn.Module, prompts: Sequence[Sequence[int]], keys: Sequence[Sequence[SampleKey]], sampling: SamplingParams
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
        batch = _Batch(inner, prompts, keys, sampling)
        with onednn_inference(inner):
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
    tokens = torch.tensor([ids for row in completions for ids in row], device=inner.device)
    live, scores = np.arange(len(owner)), []
    try:
        decoder = _decoder(inner, prompts, owner, tokens.shape[1])
        with onednn_inference(inner), torch.inference_mode():
            logits = decoder.prefill()
            logits = logits[torch.from_numpy(owner).to(logits.device)]
            for place in range(tokens.shape[1]):
                logits = logits if place == 0 else decoder.step(live, tokens[:, place - 1])
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


def _decoder(model: PreTrainedModel, prompts: Sequence[Sequence[int]], owner: np.ndarray, limit: int):
    kind = SharedPrefixDecoder if supports_shared_prefix(model, max(map(len, prompts)) + limit) else RowDecoder
    return kind(model, prompts, owner, limit)


class _Batch:
    """Completions being sampled. Completion i is sample `sample[i]` of prompt `owner[i]`."""

    def __init__(self, model: PreTrainedModel, prompts, keys, sampling: SamplingParams):
        self._model, self._sampling = model, sampling
        self._owner = np.repeat(np.arange(len(prompts)), [len(row) for row in keys])
        self._sample = np.concatenate([np.arange(len(row)) for row in keys])
        self._uniforms = uniforms(keys, sampling.max_new_tokens)
        self._decoder = _decoder(model, prompts, self._owner, sampling.max_new_tokens)
        self._live = np.arange(len(self._owner))
        self._eos = np.array(sampling.eos_ids)
        self._closing = np.array(sampling.completion_check.tokens if sampling.completion_check else ())
        watch = [StopStringMatcher(sampling.stop, sampling.decode) for _ in self._live] if sampling.stop else []
        self._watchers: list[StopStringMatcher] = watch
        self._ids = np.zeros((len(self._live), sampling.max_new_tokens), dtype=np.int64)
        self._logprobs = np.zeros(self._ids.shape, dtype=np.float32)
        self._entropies = np.zeros(len(self._live))
        """Of each completion, the sum over its tokens."""
        self._kept_token_ids: list[list[tuple[int, ...]]] = [[] for _ in self._live]
        self._tokens = torch.empty(0)
        self._drawn = 0

    @property
    def going(self) -> bool:
        return len(self._live) > 0

    def step(self) -> list[FinishedSample]:
        """Draw a token of each live completion; returns the completions that ended with it."""
        logits = self._decoder.step(self._live, self._tokens) if self._drawn else self._first()
        numbers = torch.from_numpy(self._uniforms[self._live, self._drawn]).to(logits.device)
        drawn = draw(logits, numbers, self._sampling.filters)
        ended = self._record(drawn)
        self._drawn += 1
        left = ended if self._drawn < self._sampling.max_new_tokens else np.ones_like(ended)
        finished = [self._finished(i, bool(end)) for i, end in zip(self._live[left], ended[left], strict=True)]
        self._tokens = drawn.ids[torch.from_numpy(~left).to(drawn.ids.device)]
        self._live = self._live[~left]
        return finished

    def _first(self) -> torch.Tensor:
        logits = self._decoder.prefill()
        return logits[torch.from_numpy(self._owner).to(logits.device)]

    def _record(self, drawn: TokenDraw) -> np.ndarray:
        """Record the drawn tokens; returns which completions they ended."""
        ids = self._ids[self._live, self._drawn] = drawn.ids.cpu().numpy()
        self._logprobs[self._live, self._drawn] = drawn.logprobs.cpu().numpy()
        self._entropies[self._live] += drawn.entropies.cpu().numpy()
        for i, kept in zip(self._live, drawn.kept_token_ids() or (), strict=False):
            self._kept_token_ids[i].append(kept)
        ended = np.isin(ids, self._eos)
        if self._watchers:
            found = [self._watchers[i].ends(int(token)) for i, token in zip(self._live, ids, strict=True)]
            ended |= np.array(found)
        return ended if self._sampling.completion_check is None else ended | self._complete(ids)

    def _complete(self, ids: np.ndarray) -> np.ndarray:
        """Which completions their domain calls complete, among those whose last token can complete them."""
        rule, due = self._sampling.completion_check, np.isin(ids, self._closing)
        for place in np.flatnonzero(due):
            due[place] = rule.finished(self._sampling.decode(self._ids[self._live[place], : self._drawn + 1].tolist()))
        return due

    def _finished(self, i: int, ended: bool) -> FinishedSample:
        kept_token_ids = tuple(self._kept_token_ids[i]) if self._sampling.filters.narrow else None
        ids, logprobs = self._ids[i, : self._drawn], self._logprobs[i, : self._drawn]
        entropy = float(self._entropies[i]) / max(1, self._drawn)
        sampled = TokenSample(tuple(ids.tolist()), tuple(logprobs.tolist()), not ended, kept_token_ids, entropy)
        return FinishedSample(int(self._owner[i]), int(self._sample[i]), sampled)


def uniforms(keys: Sequence[Sequence[SampleKey]], length: int) -> np.ndarray:
    """(completions, length) random numbers, each from its key and position alone; NaN for greedy completions."""
    rows = [
        np.full(length, np.nan) if key is None else np.random.Generator(np.random.Philox(derive(*key))).random(length)
        for row in keys
        for key in row
    ]
    return np.asarray(rows, dtype=np.float64)
