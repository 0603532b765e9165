"""Random weights of a known shape: what is counted from the shape is what the model has; benchmarks alone take them."""

import pytest
import torch

from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy
from rlvr_exp.models.quantization import weight_bytes
from rlvr_exp.models.random_weights import random_network

SHAPE = Architecture(
    layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocabulary=512, tied_embeddings=True
)
WORDS = (
    "benchmark=training",
    "model=qwen_coder_1_5b",
    "model.random_weights=true",
    "model.dtype=bfloat16",
    "model.architecture={layers:2,hidden:64,heads:4,kv_heads:2,head_dim:16,intermediate:128,vocabulary:2048}",
)


@pytest.mark.parametrize("bias, norm", [(False, False), (True, False), (False, True)])
def test_every_family_has_the_parameters_of_its_shape(bias: bool, norm: bool) -> None:
    shape = Architecture(**{**vars(SHAPE), "attention_bias": bias, "qk_norm": norm})
    network = random_network(shape, 32, torch.float32, "cpu")
    assert sum(value.numel() for value in network.parameters()) == shape.parameters


def test_fewer_bits_take_less_memory() -> None:
    sizes = [weight_bytes(random_network(SHAPE, 32, torch.bfloat16, "cpu", bits)) for bits in ("", "8bit", "4bit")]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_policy_without_weights_is_drawn_by_the_seed_and_needs_nothing_fetched() -> None:
    config = compose(["+stage=benchmark", *WORDS]).config
    assert list(missing_artifacts(config)) == []
    one, again, other = (load_policy(config.model, seed).model.get_input_embeddings().weight for seed in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert one.shape == (2048, 64) and one.dtype == torch.bfloat16


def test_random_weights_of_an_unknown_shape_or_outside_a_benchmark_are_refused() -> None:
    with pytest.raises(InputError, match="the model's shape is unknown"):
        compose(["+stage=benchmark", "benchmark=training", "model.random_weights=true"])
    with pytest.raises(InputError, match="random weights are for benchmarks"):
        compose(["+stage=grpo", *WORDS[1:]])
