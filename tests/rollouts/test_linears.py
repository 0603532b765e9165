"""Linear layers by oneDNN: the same numbers, for the weights of now, and gone afterwards."""

import torch
from rollout_models import tiny_model
from torch import nn

from rlvr_exp.rollouts.sampler_linears import packed_linears


def test_the_result_is_the_layers_own_and_the_layer_comes_back():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(33, 17), nn.Linear(17, 5, bias=False))
    given = torch.randn(2, 7, 33)
    wanted = layer(given)
    with packed_linears(layer), torch.inference_mode():
        assert all("forward" in vars(one) for one in layer), "they are computed by oneDNN here"
        assert torch.allclose(layer(given), wanted, atol=1e-6)
    assert not any("forward" in vars(one) for one in layer)
    assert layer(given).requires_grad


def test_layers_of_other_kinds_and_wrapped_ones_are_left_alone():
    model = nn.Sequential(nn.Linear(4, 4).bfloat16(), nn.Linear(4, 4))
    own = model[1].forward = lambda given: given
    with packed_linears(model):
        assert "forward" not in vars(model[0])
        assert model[1].forward is own
    assert model[1].forward is own


def test_weights_are_packed_anew_each_time():
    model = tiny_model()
    ids = torch.tensor([[3, 4, 5]])
    with packed_linears(model), torch.inference_mode():
        model(input_ids=ids)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1
        wanted = model(input_ids=ids).logits
    with packed_linears(model), torch.inference_mode():
        assert torch.allclose(model(input_ids=ids).logits, wanted, atol=1e-4)
