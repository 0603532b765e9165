"""Decoding over the preallocated cache equals a plain forward pass without it, however groups leave and it grows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import VOCABULARY, plain_logits, tiny_model

from rlvr_exp.rollouts import prefix_block
from rlvr_exp.rollouts.sampler_rows import RowDecoder
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@st.composite
def batches(draw):
    """Prompts, completions of each, and how many tokens each completion takes."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    sizes = [draw(st.integers(1, 4)) for _ in lengths]
    takes = [draw(st.integers(1, 9)) for size in sizes for _ in range(size)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    prompts = [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    tokens = [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in takes]
    return prompts, np.repeat(np.arange(len(sizes)), sizes), tokens


@pytest.mark.parametrize("kind", [SharedPrefixDecoder, RowDecoder])
@pytest.mark.parametrize("ahead", [1, 16])
@given(batches())
@settings(max_examples=15, deadline=None)
def test_cached_steps_equal_plain_passes(model, kind, ahead, batch):
    prompts, owner, tokens = batch
    limit = max(map(len, tokens))
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        patch.setattr(prefix_block, "AHEAD", ahead)
        patch.setattr("rlvr_exp.rollouts.shared_prefix_decoder.PREFILL_TOKENS", 10)
        decoder = kind(model, prompts, owner, limit)
        found = [[row] for row in decoder.prefill()[torch.from_numpy(owner)]]
        for place in range(limit - 1):
            live = np.array([i for i, ids in enumerate(tokens) if len(ids) > place + 1])
            logits = decoder.step(live, torch.tensor([tokens[i][place] for i in live]))
            for i, row in zip(live, logits, strict=True):
                found[i].append(row)
    for i, ids in enumerate(tokens):
        wanted = plain_logits(model, prompts[owner[i]], tuple(ids))
        assert torch.allclose(torch.stack(found[i]), wanted, atol=1e-4)


def test_groups_that_ended_give_up_their_rows(model):
    prompts = [[3, 4, 5]] * 8
    decoder = SharedPrefixDecoder(model, prompts, np.repeat(np.arange(8), 2), 4)
    with torch.inference_mode():
        decoder.prefill()
        decoder.step(np.arange(16), torch.full((16,), 7))
        decoder.step(np.array([4, 5]), torch.full((2,), 7))
    assert {len(layer.keys) for layer in decoder._cache._layers.values()} == {1}


def test_a_prompt_is_computed_once_and_finished_completions_never(model):
    seen = []
    hook = model.model.layers[0].mlp.register_forward_hook(
        lambda module, given, out: seen.append(given[0].shape[:2].numel())
    )
    decoder = SharedPrefixDecoder(model, [[3, 4, 5], [6, 7]], np.array([0, 0, 0, 1]), 4)
    with torch.inference_mode():
        decoder.prefill()
        decoder.step(np.arange(4), torch.full((4,), 7))
        decoder.step(np.array([1, 3]), torch.full((2,), 7))
    hook.remove()
    assert seen == [5, 4, 2]
