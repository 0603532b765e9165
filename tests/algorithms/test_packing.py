"""Packed groups give the same log-probabilities and gradient as one row per completion."""

import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from torch.nn.attention.flex_attention import create_mask
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms import logprobs, packing
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import (
    FLEX,
    SDPA_PACKED,
    CannotPack,
    attending,
    block_mask,
    filled,
    packed,
    row_by_row,
    segment_mask,
)

VOCABULARY = 40


def tiny(**more) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, max_position_embeddings=128, **more)
    model = Qwen3ForCausalLM(config)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


def batch(groups: list[tuple[int, list[int]]]) -> tuple[list[list[int]], list[list[int]], list[int], int]:
    """Random ids for groups of (prompt length, completion lengths): prompts, completions, owners, T."""
    generator = torch.Generator().manual_seed(1)

    def tokens(count: int) -> list[int]:
        return torch.randint(1, VOCABULARY, (count,), generator=generator).tolist()

    prompts, answers, owners = [], [], []
    for group, (prompt, lengths) in enumerate(groups):
        head = tokens(prompt)
        for length in lengths:
            prompts.append(head)
            answers.append(tokens(length))
            owners.append(group)
    return prompts, answers, owners, max(map(len, answers))


def learned(model, rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(log-probabilities, entropies, gradient of a random weighting of the former)."""
    weights = torch.randn(rows.shape, generator=torch.Generator().manual_seed(2))
    model.zero_grad()
    scores = score(model, rows, 0.7, entropy=True)
    (rows.placed(scores.logprobs) * weights).sum().backward()
    gradient = torch.cat([value.grad.flatten() for value in model.parameters()])
    return rows.placed(scores.logprobs.detach()), rows.placed(scores.entropies.detach()), gradient


groups = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(1, 6), min_size=1, max_size=4)), min_size=1, max_size=3
)


@settings(max_examples=tries(10), deadline=None)
@given(groups)
def test_log_probabilities_entropies_and_gradients_agree_with_row_by_row(groups):
    model, (prompts, answers, owners, width) = tiny(), batch(groups)
    a, b, c = learned(model, row_by_row(prompts, answers, width))
    x, y, z = learned(model, packed(prompts, answers, owners, width))
    assert torch.allclose(a, x, atol=1e-5)
    assert torch.allclose(b, y, atol=1e-5)
    assert (c - z).norm() <= 1e-5 * c.norm() + 1e-7


@settings(max_examples=tries(8), deadline=None)
@given(groups, st.integers(0, 200))
def test_filling_a_row_up_changes_nothing_that_is_learned(groups, more):
    model, (prompts, answers, owners, width) = tiny(), batch(groups)
    rows = packed(prompts, answers, owners, width)
    wide = filled(rows, rows.input_ids.shape[1] + more)
    assert wide.input_ids.shape == wide.position_ids.shape == (1, rows.input_ids.shape[1] + more)
    assert sum(wide.layout.widths) == wide.input_ids.shape[1] and wide.layout.longest == rows.layout.longest
    for one, other in zip(learned(model, rows), learned(model, wide), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_row_that_is_wide_enough_or_not_packed_is_left_as_it_is():
    prompts, answers, owners, width = batch([(4, [2, 3]), (6, [1, 5])])
    one, several = packed(prompts, answers, owners, width), row_by_row(prompts, answers, width)
    assert filled(one, one.input_ids.shape[1]) is one and filled(several, 1000) is several


def test_gradient_checkpointing_changes_nothing():
    prompts, answers, owners, width = batch([(4, [2, 3]), (6, [1, 5])])
    rows, found = packed(prompts, answers, owners, width), []
    for checkpointing in (False, True):
        model = tiny().train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        with attending(model, SDPA_PACKED):
            found.append(learned(model, rows)[2])
    assert torch.allclose(*found, atol=1e-6)


def test_tiled_head_and_held_logits_agree(monkeypatch):
    prompts, answers, owners, width = batch([(4, [2, 3]), (6, [1, 5])])
    found = []
    for rows in (packed(prompts, answers, owners, width), row_by_row(prompts, answers, width)):
        for held, fused in ((2**26, False), (0, False), (0, True)):
            monkeypatch.setattr(logprobs, "HELD", held)
            model = tiny()
            scores = score(model, rows, 1.0, entropy=True, fused=fused)
            rows.placed(scores.logprobs).sum().backward()
            gradient = torch.cat([value.grad.flatten() for value in model.parameters()])
            found.append(
                torch.cat([rows.placed(scores.logprobs).flatten(), rows.placed(scores.entropies).flatten(), gradient])
            )
    assert all(torch.allclose(found[0], other, atol=1e-5) for other in found[1:])


def test_segments_of_other_lengths_are_attended_to_in_calls_of_their_own(monkeypatch):
    monkeypatch.setattr(packing, "_SMALL", 0)
    monkeypatch.setattr(packing, "_WORTH", 0)
    assert list(packing._alike((9, 1, 1, 1, 8, 9))) == [(9,), (1, 1, 1), (8, 9)]
    prompts, answers, owners, width = batch([(5, [4, 12, 1, 1, 2, 11, 12]), (1, [3]), (1, [2, 9])])
    rows = packed(prompts, answers, owners, width)
    calls = packing._batches(rows.layout, torch.float32)
    assert [one.lengths for one in calls[:5]] == [(8,), (12,), (1, 1, 2), (11, 12), (3,)]
    wanted = learned(tiny(), row_by_row(prompts, answers, width))
    for one, other in zip(learned(tiny(), rows), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_short_segments_share_a_long_prefix_under_one_mask():
    prompts, answers, owners, _ = batch([(60, [3, 2, 4, 3]), (4, [30, 30, 30, 30])])
    calls = packing._batches(packed(prompts, answers, owners, 30).layout, torch.float32)
    assert [one.lengths for one in calls] == [(62,), (9,), (33,), (30, 30, 30)]


def test_rows_of_different_prompts_in_a_group_are_refused():
    prompts, answers, _, width = batch([(4, [2]), (4, [2])])
    with pytest.raises(ValueError, match="groups must be contiguous"):
        packed(prompts, answers, [0, 0], width)


def test_the_block_mask_sees_what_the_segment_masks_see():
    prompts, answers, owners, width = batch([(4, [2, 3]), (1, [1]), (6, [1, 5])])
    layout = packed(prompts, answers, owners, width).layout
    seen = create_mask(block_mask(layout, torch.device("cpu")).mask_mod, 1, 1, sum(layout.widths), sum(layout.widths))[
        0, 0
    ]
    wanted, start = torch.zeros_like(seen), 0
    for prefix, segments, size in zip(layout.prefixes, layout.segments, layout.widths, strict=True):
        wanted[start : start + prefix, start : start + prefix] = torch.ones(prefix, prefix).tril().bool()
        mask = segment_mask(prefix, segments, torch.float32, torch.device("cpu"))[0, 0] == 0
        wanted[start + prefix : start + size, start : start + size] = mask
        start += size
    assert (seen == wanted).all()


def test_a_window_shorter_than_a_completion_with_its_prompt_is_refused():
    window = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}
    prompts, answers, owners, width = batch([(4, [2, 3])])
    with pytest.raises(CannotPack, match="slides over 4 tokens"):
        score(tiny(**window), packed(prompts, answers, owners, width), 1.0)


@pytest.mark.skipif(shutil.which("g++") is None, reason="FlexAttention is compiled")
@pytest.mark.slow
def test_flex_attention_says_what_sdpa_says():
    prompts, answers, owners, width = batch([(40, [12, 13]), (60, [11, 25, 9])])
    model, rows = tiny().eval(), packed(prompts, answers, owners, width)
    with torch.no_grad():  # FlexAttention has no backward pass on CPUs.
        found = [score(model, rows, 1.0, implementation=way).logprobs for way in (FLEX, SDPA_PACKED)]
    assert torch.allclose(*found, atol=1e-5)
