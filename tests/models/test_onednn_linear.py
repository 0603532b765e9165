"""Linear layers by oneDNN: the same numbers and gradients, for the current weights, and removed afterwards."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from torch import nn
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.models import onednn_linear
from rlvr_exp.models.onednn_linear import onednn_inference, onednn_training, padded_rows


def tiny_model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    return Qwen3ForCausalLM(Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True))


def test_the_result_is_the_layers_own_and_the_layer_comes_back():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(33, 17), nn.Linear(17, 5, bias=False))
    given = torch.randn(2, 7, 33)
    wanted = layer(given)
    with onednn_inference(layer), torch.inference_mode():
        assert all("forward" in vars(one) for one in layer), "they are computed by oneDNN here"
        assert torch.allclose(layer(given), wanted, atol=1e-6)
    assert not any("forward" in vars(one) for one in layer)
    assert layer(given).requires_grad


def test_layers_of_other_kinds_and_wrapped_ones_are_left_alone():
    model = nn.Sequential(nn.Linear(4, 4).bfloat16(), nn.Linear(4, 4))
    own = model[1].forward = lambda given: given
    with onednn_inference(model):
        assert "forward" not in vars(model[0])
        assert model[1].forward is own
    assert model[1].forward is own


def test_a_layer_spread_over_ranks_is_left_alone_in_training_whether_it_is_here_or_not():
    layer = nn.Sequential(nn.Linear(4, 4))
    layer[0].weight.ds_id = 0  # As DeepSpeed marks it.
    with onednn_training(layer):
        assert "forward" not in vars(layer[0])
    with onednn_inference(layer):
        assert "forward" in vars(layer[0]), "sampling has gathered them all"


def test_weights_are_packed_anew_each_time():
    model = tiny_model()
    ids = torch.tensor([[3, 4, 5]])
    with onednn_inference(model), torch.inference_mode():
        model(input_ids=ids)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1
        wanted = model(input_ids=ids).logits
    with onednn_inference(model), torch.inference_mode():
        assert torch.allclose(model(input_ids=ids).logits, wanted, atol=1e-4)


@given(
    rows=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    wide=st.integers(1, 40),
    tall=st.integers(1, 40),
    bias=st.booleans(),
    seed=st.integers(0, 2**16),
)
@settings(deadline=None, max_examples=tries(40))
def test_gradients_are_the_layers_own(rows, wide, tall, bias, seed):
    torch.manual_seed(seed)
    layer, x, upstream = nn.Linear(wide, tall, bias), torch.randn(*rows, wide), torch.randn(*rows, tall)
    wanted = gradients(layer, x, upstream)
    with onednn_training(layer):
        assert "_Linear" in type(layer(x).grad_fn).__name__, "they are computed by oneDNN here"
        got = gradients(layer, x, upstream)
    for ours, theirs in zip(got, wanted, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def gradients(layer: nn.Module, x: torch.Tensor, upstream: torch.Tensor) -> list[torch.Tensor]:
    x = x.clone().requires_grad_()
    return list(torch.autograd.grad(layer(x), [x, *layer.parameters()], upstream))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_model_with_a_tied_head_learns_the_same(checkpointed):
    model = tiny_model().train()
    if checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    ids = torch.tensor([[3, 4, 5, 6, 7]])

    def flat() -> torch.Tensor:
        model.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        return torch.cat([value.grad.flatten() for value in model.parameters()])

    wanted = flat()
    with onednn_training(model):
        got = flat()
        assert torch.equal(got, flat()), "the same bits each time"
    assert (got - wanted).norm() < 1e-5 * wanted.norm()
    assert not any("forward" in vars(one) for one in model.modules() if isinstance(one, nn.Linear))


def test_frozen_layers_pass_gradients_on_and_take_none():
    layer, x = nn.Linear(5, 3).requires_grad_(False), torch.randn(2, 5, requires_grad=True)
    with onednn_training(layer):
        layer(x).sum().backward()
    assert torch.allclose(x.grad, layer.weight.sum(0).expand(2, 5))
    assert layer.weight.grad is None


def test_inner_contexts_leave_the_layers_to_the_outer_one():
    layer = nn.Linear(4, 4)
    with onednn_training(layer):
        outer = layer.forward
        with onednn_training(layer):
            assert layer.forward is outer
        assert layer.forward is outer


def test_other_precisions_take_the_layers_own_way():
    layer = nn.Linear(4, 4)
    with onednn_training(layer), torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(2, 4)).dtype == torch.bfloat16


def test_few_numbers_of_rows_ever_reach_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN keeps the kernel that it compiles for each."""
    met, product = set(), onednn_linear.product
    monkeypatch.setattr(
        onednn_linear, "product", lambda *given: met.add((*given[0].shape, *given[1].shape)) or product(*given)
    )
    layer = nn.Linear(8, 4)
    for count in range(1, 257):
        with onednn_training(layer):
            layer(torch.randn(count, 8, requires_grad=True)).sum().backward()
        with onednn_inference(layer), torch.inference_mode():
            layer(torch.randn(1, count, 8))
    sides = 3 if onednn_linear._AVX512 else 2  # Without AVX-512 another library computes the gradients of weights.
    assert sides * 60 < len(met) < sides * 90, "forward and the gradients"


@given(st.integers(0, 1 << 20))
def test_rows_are_padded_by_a_sixteenth_at_most(count: int) -> None:
    assert count <= padded_rows(count) <= max(2, count * 17 / 16)
    assert padded_rows(padded_rows(count)) == padded_rows(count)


@pytest.mark.parametrize("count", [33, 67, 1000])
def test_rows_of_zeros_change_nothing(count: int) -> None:
    torch.manual_seed(0)
    layer, x, back = nn.Linear(48, 24), torch.randn(count, 48, requires_grad=True), torch.randn(count, 24)
    assert padded_rows(count) > count
    with onednn_training(layer):
        y = layer(x)
        y.backward(back)
    weight, bias = layer.weight.detach(), layer.bias.detach()
    torch.testing.assert_close(y.detach(), onednn_linear.product(x.detach(), weight, bias))
    torch.testing.assert_close(x.grad, onednn_linear.product(back, weight.t()))
    exact = back.double().t() @ x.detach().double()
    torch.testing.assert_close(layer.weight.grad.double(), exact, atol=1e-4, rtol=1e-5)


def test_a_layers_result_may_be_changed_in_place() -> None:
    layer = nn.Linear(5, 3)
    with onednn_training(layer):
        y = layer(torch.ones(1, 33, 5))
        y += 1
        y.sum().backward()
    assert layer.weight.grad is not None
