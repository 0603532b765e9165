"""Beam search by Transformers, one prompt at a time: other prompts have no influence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationConfig, PreTrainedModel

from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, Turns
from rlvr_exp.rollouts.sampler import causal_model
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams


@dataclass(frozen=True)
class Beams:
    """Yields completions as rlvr_exp.rollouts.sampler.stream does, the likeliest first; keys, filters and the turns before
    are not used.

    Completions are compared by their mean log-probability a token.
    """

    width: int

    def __call__(
        self,
        model: nn.Module,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[Sequence[SampleKey]],
        sampling: SamplingParams,
        turns: Turns = NO_TURNS,
    ) -> Iterator[FinishedSample]:
        inner = causal_model(model)
        was_training = inner.training
        inner.eval()
        try:
            for place, (prompt, wanted) in enumerate(zip(prompts, keys, strict=True)):
                for sample, ids in enumerate(self._best(inner, prompt, len(wanted), sampling)):
                    yield FinishedSample(place, sample, _sampled(ids, sampling.eos_ids))
        finally:
            inner.train(was_training)

    @torch.inference_mode()
    def _best(
        self, model: PreTrainedModel, prompt: Sequence[int], count: int, sampling: SamplingParams
    ) -> list[list[int]]:
        given = torch.tensor([list(prompt)], device=model.device)
        # Every field is set: an omitted field would be taken from the checkpoint's own generation_config.json.
        search = GenerationConfig(
            num_beams=self.width,
            num_return_sequences=count,
            max_new_tokens=sampling.max_new_tokens,
            eos_token_id=list(sampling.eos_ids),
            pad_token_id=model.generation_config.pad_token_id,
            do_sample=False,
            temperature=1.0,
            top_k=50,
            top_p=1.0,
            repetition_penalty=1.0,
            length_penalty=1.0,
            no_repeat_ngram_size=0,
            early_stopping=False,
            use_cache=True,
        )
        found = model.generate(given, attention_mask=torch.ones_like(given), generation_config=search)
        return [row[len(prompt) :] for row in found.tolist()]


def _sampled(ids: Sequence[int], ends: Sequence[int]) -> TokenSample:
    """Up to the first end token; like a greedy token's, the log-probability of each counts as 0."""
    end = next((place for place, token in enumerate(ids) if token in ends), None)
    kept = tuple(ids if end is None else ids[: end + 1])
    return TokenSample(kept, (0.0,) * len(kept), truncated=end is None)
