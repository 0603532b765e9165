"""Weights in fewer bits: how much memory they take, and that sampling and training see the same weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import IDS, loaded, logits, updated, written

from rlvr_exp.config.model import Adapter, Model
from rlvr_exp.models.policy import Policy, load_network
from rlvr_exp.models.quantization import weight_bytes

BITS = {"4bit": 0.40, "8bit": 0.65}
"""The most that the weights may hold, as a share of bfloat16's."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    shape = {"hidden": 256, "layers": 2, "dtype": torch.bfloat16}
    return written(tmp_path_factory.mktemp("model"), **shape)


@pytest.mark.property(7)
@settings(max_examples=4, deadline=None)
@given(hidden=st.sampled_from([256, 320, 448]), layers=st.integers(1, 3), seed=st.integers(0, 99))
def test_quantized_weights_hold_less_memory(tmp_path_factory, hidden: int, layers: int, seed: int) -> None:
    shape = {"hidden": hidden, "layers": layers, "vocabulary": 256, "dtype": torch.bfloat16}
    place = str(written(tmp_path_factory.mktemp("shape"), seed, **shape))
    full = weight_bytes(load_network(Model(path=place), seed))
    for bits, most in BITS.items():
        few = load_network(Model(path=place, quantization=bits), seed)
        assert weight_bytes(few) <= most * full
        few.eval()(input_ids=IDS % 256)
        few.train()(input_ids=IDS % 256)
        assert weight_bytes(few) <= most * full, "nothing is unpacked by use"


@pytest.mark.parametrize(("bits", "near"), [("4bit", 0.8), ("8bit", 0.99)])
def test_quantized_weights_answer_much_like_the_full_ones(folder, bits: str, near: float) -> None:
    full, few = (logits(loaded(folder, quantization=one)).float().flatten() for one in ("none", bits))
    assert near < torch.cosine_similarity(full, few, dim=0) < 1 - 1e-6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("bits", BITS)
def test_sampling_computes_what_training_computes(folder, bits: str, dtype: str) -> None:
    policy = loaded(folder, quantization=bits, dtype=dtype, adapter=Adapter(kind="lora", rank=4))
    sampling = logits(policy)
    training = policy.model.train()(input_ids=IDS).logits
    assert training.requires_grad and torch.equal(sampling, training)
    assert not torch.equal(logits(updated(policy)), sampling)


@pytest.mark.parametrize("bits", BITS)
def test_gradients_pass_after_sampling_as_before(folder, bits: str) -> None:
    fresh, sampled = (loaded(folder, quantization=bits, adapter=Adapter(kind="lora", rank=4)) for _ in range(2))
    logits(sampled)
    assert torch.equal(gradient(sampled), gradient(fresh))


def gradient(policy: Policy) -> torch.Tensor:
    policy.model.train()(input_ids=IDS, labels=IDS).loss.backward()
    return torch.cat([value.grad.flatten() for value in policy.model.parameters() if value.requires_grad])
