"""The fused head gives the log-probabilities, entropies and gradients of plain logits, however its rows are cut."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from torch import nn
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

from rlvr_exp.algorithms import logprobs as scores
from rlvr_exp.algorithms.logprobs import Drawn, plain_head, scoring, token_logprobs

SHAPE = dict(vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)


def both(count: int, temperature: float, entropy: bool, filtered: bool, bias: bool, seed: int):
    """(fused, plain): (log-probabilities, entropies, gradients) of a random weighting."""
    torch.manual_seed(seed)
    head, hidden = nn.Linear(24, 37, bias=bias), torch.randn(1, count + 3, 24, requires_grad=True)
    places, labels = torch.randperm(count + 3)[:count], torch.randint(37, (count,))
    kept = None
    if filtered:
        kept = torch.cat([labels[:, None], torch.randint(-1, 37, (count, 5))], 1)
        kept[::2] = -1
    weights = torch.randn(2, count)
    found = []
    for fused in (True, False):
        if fused:
            with scoring(head, Drawn(places, labels, temperature, kept, entropy, True)):
                logprobs, *others = head(hidden)[0].unbind(-1)
            entropies, top = others[0] if entropy else None, others[-1].bool()
        else:
            logits = head(hidden)[0, places]
            logprobs, entropies = token_logprobs(logits, labels, temperature, kept, entropy)
            if kept is None:
                assert torch.equal(top, logits.argmax(-1) == labels)
        loss = (weights[0] * logprobs).sum() + ((weights[1] * entropies).sum() if entropy else 0.0)
        grads = torch.autograd.grad(loss, [hidden, *head.parameters()])
        found.append([logprobs.detach(), *([entropies.detach()] if entropy else []), *grads])
    return found


@settings(max_examples=tries(25), deadline=None)
@given(
    st.tuples(
        st.integers(1, 70),
        st.sampled_from([1.0, 0.7]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.integers(0, 2**16),
    )
)
def test_log_probabilities_entropies_and_gradients_are_those_of_plain_logits(case):
    for fused, plain in zip(*both(*case), strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-4, atol=2e-6)


def test_rows_that_do_not_fit_are_computed_in_parts(monkeypatch):
    whole, _ = both(50, 0.9, True, True, True, 3)
    monkeypatch.setattr(scores, "FUSED_HELD", 37 * 11)
    monkeypatch.setattr(scores, "_NEAR", 37 * 4)
    products = []
    own = scores.product
    monkeypatch.setattr(scores, "product", lambda x, *more: products.append(len(x)) or own(x, *more))
    cut, _ = both(50, 0.9, True, True, True, 3)
    assert len(products) == 3 * 5, "forward, again in the backward pass, and the gradient of hidden states"
    for one, other in zip(whole, cut, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-6)


def test_a_second_backward_pass_gives_the_same_gradient():
    torch.manual_seed(0)
    head, hidden = nn.Linear(8, 11, bias=False), torch.randn(1, 6, 8)
    with scoring(head, Drawn(torch.arange(5), torch.arange(5), 1.0, None, False, False)):
        loss = head(hidden).sum()
    first = torch.autograd.grad(loss, head.weight, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(loss, head.weight)[0], first)


def test_no_token_has_a_gradient_of_zero():
    head, none = nn.Linear(8, 11), torch.zeros(0, dtype=torch.long)
    with scoring(head, Drawn(none, none, 1.0, None, False, False)):
        head(torch.randn(1, 6, 8, requires_grad=True)).sum().backward()
    assert not head.weight.grad.any() and not head.bias.grad.any()


@pytest.mark.parametrize("case", ["softcap", "bfloat16", "wrapped", "sharded"])
def test_other_heads_are_left_to_the_model(case):
    model = LlamaForCausalLM(LlamaConfig(**SHAPE))
    assert plain_head(nn.Sequential(model)) is model.lm_head
    if case == "softcap":
        model = Gemma2ForCausalLM(Gemma2Config(**SHAPE, num_key_value_heads=1, head_dim=8))
    elif case == "bfloat16":
        model = model.bfloat16()
    elif case == "wrapped":
        model.lm_head = type("Other", (nn.Linear,), {})(16, 40, bias=False)
    else:
        model.lm_head.weight.ds_id = 0
    assert plain_head(model) is None
