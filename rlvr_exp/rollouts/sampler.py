"""The sampling loop for a local engine: several completions for each prompt, the prompt computed once.

Completions leave the batch the moment they end, and are yielded while the others are still being sampled. The random
number of every token comes from the caller's key and the token's position; no global generator is read or advanced
(DESIGN.md, "Determinism"), so with equal weights the rest of the batch does not matter.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, Turns
from rlvr_exp.rollouts.sampling_batch import SamplingBatch, decoder
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams


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
