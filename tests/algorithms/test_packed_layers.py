"""Layers as one function give the outputs and gradients of the library's layers, and others are left alone."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from rlvr_exp.algorithms import packed_layers as subject
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packed_layers import differs, packed_layers, plain_layers
from rlvr_exp.algorithms.packing import SDPA_PACKED, CannotPack, attending, packed

SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
}
MODELS = {
    "llama": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": 40},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"attention_bias": True},
}


def made(name: str, **more) -> nn.Module:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SHAPE, **MODELS[name], **more))
    for value in model.parameters():
        nn.init.normal_(value, 1.0 if value.ndim == 1 else 0.0, 0.3)
    return model.train()


def rows():
    draw = torch.Generator().manual_seed(1)
    prompts, completions, owners = [], [], []
    for group, (prompt, lengths) in enumerate([(7, (5, 9, 2, 5)), (1, (4,)), (12, (3, 3, 3))]):
        head = torch.randint(64, (prompt,), generator=draw).tolist()
        for length in lengths:
            prompts.append(head)
            completions.append(torch.randint(64, (length,), generator=draw).tolist())
            owners.append(group)
    return packed(prompts, completions, owners, 9)


def gradients(model: nn.Module) -> list[torch.Tensor]:
    """Log-probabilities and the gradients of all trained weights."""
    model.zero_grad()
    with attending(model, SDPA_PACKED):
        found = score(model, rows(), 0.8, entropy=True)
        (found.logprobs * torch.linspace(-1, 1, len(found.logprobs)) + 0.1 * found.entropies).sum().backward()
    return [found.logprobs.detach(), *(value.grad for value in model.parameters() if value.grad is not None)]


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_gradient_is_the_librarys(name, checkpointed):
    model = made(name)
    wanted = gradients(model)
    if checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    with packed_layers(model):
        assert all("forward" in vars(layer) for layer in model.model.layers)
        got = gradients(model)
        for one, other in zip(got, gradients(model), strict=True):
            assert torch.equal(one, other), "the same bits each time"
    assert not any("forward" in vars(layer) for layer in model.model.layers)
    assert len(got) == len(wanted) == 1 + len(list(model.parameters()))
    for one, other in zip(got, wanted, strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()


def test_frozen_weights_take_no_gradient_and_pass_it_on():
    model = made("qwen3")
    for name, value in model.named_parameters():
        value.requires_grad_("layers.0.mlp" in name or "layers.1.self_attn.k" in name or name.endswith("norm.weight"))
    wanted = gradients(model)
    with packed_layers(model):
        got = gradients(model)
    for one, other in zip(got, wanted, strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()


@pytest.mark.parametrize("case", ["bfloat16", "hook", "adapter", "norm", "dropout", "sharded", "other"])
def test_other_layers_are_left_alone(case):
    model = made("qwen3", **({"attention_dropout": 0.1} if case == "dropout" else {}))
    layer = model.model.layers[0]
    if case == "bfloat16":
        layer.bfloat16()
    elif case == "hook":
        layer.mlp.register_forward_hook(lambda *_: None)
    elif case == "adapter":
        layer.mlp.up_proj = type("Adapted", (nn.Linear,), {})(32, 48, bias=False)
    elif case == "norm":
        layer.input_layernorm = nn.RMSNorm(32)
    elif case == "sharded":
        layer.mlp.up_proj.weight.ds_id = 0
    elif case == "other":
        layer = model.model.layers[0] = nn.Identity()
    assert layer not in plain_layers(model)


def test_a_layer_that_computes_something_else_is_found(monkeypatch):
    assert differs(made("llama")) == differs(made("qwen3")) == differs(nn.Linear(2, 2)) == ""
    own = subject._gated_backward
    monkeypatch.setattr(subject, "_gated_backward", lambda *given: own(*given) * 1.01)
    assert "gradients of a layer differ" in differs(made("llama"))


def test_a_window_that_is_too_short_is_refused():
    model = made("mistral")
    model.model.layers[0].self_attn.sliding_window = model.config.sliding_window = 10
    with packed_layers(model), attending(model, SDPA_PACKED), pytest.raises(CannotPack, match="slides over 10 tokens"):
        score(model, rows(), 1.0)
