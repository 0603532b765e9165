"""Packed groups give the log-probabilities and the gradient of one row a completion."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms.packing import pack_groups, unpack


def tiny(attention: str) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = dict(vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, max_position_embeddings=128)
    config._attn_implementation = attention
    model = Qwen3ForCausalLM(config)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


def batch(groups: list[tuple[int, list[int]]]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Random ids for groups of (prompt length, completion lengths): ids, mask, T."""
    wide = max(prompt for prompt, _ in groups)
    long = max(n for _, lengths in groups for n in lengths)
    generator = torch.Generator().manual_seed(1)
    ids, mask = [], []
    for prompt, lengths in groups:
        head = torch.randint(1, 40, (prompt,), generator=generator)
        for n in lengths:
            row, seen = torch.zeros(wide + long, dtype=torch.long), torch.zeros(wide + long, dtype=torch.long)
            row[wide - prompt : wide] = head
            row[wide : wide + n] = torch.randint(1, 40, (n,), generator=generator)
            seen[wide - prompt : wide + n] = 1
            ids.append(row)
            mask.append(seen)
    return torch.stack(ids), torch.stack(mask), long


def row_by_row(model, ids, mask, long):
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-long] = -100
    output = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    return output.log_probs[:, -long:], output.entropy[:, -long:]


def packed(model, ids, mask, long, group):
    rows = pack_groups(ids, mask, long, group, model.dtype)
    output = model(
        input_ids=rows.input_ids,
        attention_mask=rows.attention_mask,
        position_ids=rows.position_ids,
        shift_labels=rows.labels,
        fused_lm_head=True,
    )
    return unpack(output.log_probs, rows, group), unpack(output.entropy, rows, group)


groups = st.integers(1, 4).flatmap(
    lambda size: st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.integers(1, 6), min_size=size, max_size=size)), min_size=1, max_size=3
    )
)


@settings(max_examples=25, deadline=None)
@given(groups, st.sampled_from(["sdpa", "eager"]))
def test_log_probabilities_entropies_and_gradients_agree_with_row_by_row(groups, attention):
    model = tiny(attention)
    ids, mask, long = batch(groups)
    weights = torch.randn(ids.shape[0], long, generator=torch.Generator().manual_seed(2)) * mask[:, -long:]
    found = []
    for logprobs, entropy in (row_by_row(model, ids, mask, long), packed(model, ids, mask, long, len(groups[0][1]))):
        model.zero_grad()
        (logprobs * weights).sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        found.append((logprobs.detach() * mask[:, -long:], entropy.detach() * mask[:, -long:], gradient))
    (a, b, c), (x, y, z) = found
    assert torch.allclose(a, x, atol=1e-5)
    assert torch.allclose(b, y, atol=1e-5)
    assert (c - z).norm() <= 1e-5 * c.norm() + 1e-7


def test_rows_of_different_prompts_in_a_group_are_refused():
    ids, mask, long = batch([(4, [2, 2]), (4, [2, 2])])
    with pytest.raises(ValueError, match="groups must be contiguous"):
        pack_groups(ids[[0, 2, 1, 3]], mask, long, 2, torch.float32)
