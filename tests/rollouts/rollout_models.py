"""Small models and prompts for the tests of rollouts."""

import numpy as np
import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.rollouts.shared_prefix_cache import EXACT
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder

PAD, EOS, VOCABULARY = 0, 1, 30


def tiny_model(**changes) -> Qwen3ForCausalLM:
    """Random weights; two query heads share a head of keys."""
    torch.manual_seed(0)
    shape = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 256}
    shape |= {"initializer_range": 0.3}
    return Qwen3ForCausalLM(Qwen3Config(**shape | changes)).eval()


def prompts(count: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 9, (count,), generator=generator).tolist()
    return [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]


def keys(count: int, group: int, seed: int = 0) -> list[list[tuple]]:
    return [[(seed, "test", p, s) for s in range(group)] for p in range(count)]


@torch.no_grad()
def plain_logits(model, prompt: list[int], completion: tuple[int, ...]) -> torch.Tensor:
    """(tokens, vocabulary) of a single sequence, without a cache."""
    return model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1].float()


def exact_model(**changes) -> Qwen3ForCausalLM:
    """Skips where this machine's libraries give a token other bits in other company; the exact tests say nothing there."""
    model = tiny_model(**changes)
    if not is_exact(model):
        pytest.skip("products here have other bits in other company")
    return model


@torch.inference_mode()
def is_exact(model) -> bool:
    """Whether tokens of prompts and of completions have the same bits in any company. Tries four completions over more than
    one part of columns: in passes of equal shares, in passes of uneven ones and token by token at the end, and the first
    with its prompt alone."""
    longest = min(length for length in (getattr(model.config, "sliding_window", None), 256) if length)
    size = min(EXACT + 6, longest // 2)
    generator = torch.Generator().manual_seed(0)
    lengths = [min(length, longest - size) for length in (EXACT + 5, EXACT + 58, 10, 5)]
    asked = [torch.randint(VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    tokens = torch.randint(VOCABULARY, (4, size), generator=generator).numpy()
    even = last_logits(model, asked, tokens, [16, 16, 16, 16])
    uneven = last_logits(model, asked, tokens, [24, 9, 16, 5], singly=LAST)
    alone = last_logits(model, asked[:1], tokens[:1], [40])
    return torch.equal(even, uneven) and torch.equal(even[:1], alone)


LAST = 8
"""Tokens at the end of each completion whose logits are compared."""


def last_logits(model, prompts: list[list[int]], tokens: np.ndarray, each: list[int], singly: int = 0) -> torch.Tensor:
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
