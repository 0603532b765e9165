"""Small models and prompts for the tests of rollouts."""

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.rollouts.shared_prefix_decoder import is_exact

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
    """Skips where this machine's libraries give a token other bits in other company; tokens are then not guessed."""
    model = tiny_model(**changes)
    if not is_exact(model):
        pytest.skip("products here have other bits in other company")
    return model
