"""The operations that an update needs are those of its products, and no sample without a gradient is counted."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import packed
from rlvr_exp.algorithms.training_batch import TrainingBatch, pad_left, pad_right
from rlvr_exp.benchmarks.arithmetic import matrix_flops, update_flops

PROMPTS = [[3] * 9, [4] * 5]
LENGTHS = [6, 8, 3, 7]


def model() -> LlamaForCausalLM:
    shape = dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    return LlamaForCausalLM(LlamaConfig(**shape, num_key_value_heads=2, tie_word_embeddings=True))


def batch(advantages: list[float]) -> TrainingBatch:
    prompt_ids, prompt_mask = pad_left([prompt for prompt in PROMPTS for _ in range(2)], 0)
    ids, mask = pad_right([[5] * length for length in LENGTHS], 0)
    return TrainingBatch(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=torch.zeros(ids.shape),
        advantages=torch.tensor(advantages)[:, None] * mask,
        weights=mask / mask.sum(),
        sizes=(2, 2),
        group_ids=torch.tensor([0, 0, 1, 1]),
    )


def test_products_are_counted_as_torch_counts_them():
    made, prompts = model(), [prompt for prompt in PROMPTS for _ in range(2)]
    rows = packed(prompts, [[5] * length for length in LENGTHS], [0, 0, 1, 1], 8)
    with FlopCounterMode(display=False) as counted:
        score(made, rows, 1.0, fused=False).logprobs.sum().backward()
    found = {str(name): count for name, count in counted.get_flop_counts()["Global"].items()}
    products = sum(count for name, count in found.items() if name in ("aten.mm", "aten.addmm"))
    pairs = sum(p * p / 2 + p * (a + b) + (a * a + b * b) / 2 for p, a, b in ((8, 6, 8), (4, 3, 7)))
    attention = 3 * 2 * (2 * made.config.num_hidden_layers * made.config.hidden_size) * pairs
    assert update_flops(made, batch([1, -1, 1, -1])) == pytest.approx(products + attention)


def test_samples_without_a_gradient_need_no_operations():
    made = model()
    assert update_flops(made, batch([0, 0, 0, 0])) == 0
    whole, half = update_flops(made, batch([1, 1, 1, 1])), update_flops(made, batch([1, 1, 0, 0]))
    assert 0.5 * whole < half < whole
    assert update_flops(made, batch([1, 1, 0, 0]), reference=True) > 4 / 3 * half
    made.requires_grad_(False)
    assert update_flops(made, batch([1, 1, 1, 1])) == pytest.approx(2 / 3 * whole, rel=0.05)


def test_the_limit_is_a_speed():
    assert 1e8 < matrix_flops() < 1e15
