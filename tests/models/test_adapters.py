"""Adapters: nothing changes before training, the base never does, several share a base, wrong settings are reported."""

import pytest
import torch
from peft.tuners.lora import Linear
from small_models import loaded, logits, updated, written

from rlvr_exp.config.model import Adapter
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.adapters import activate, adapter_metrics, adapter_parameters, adapters_cast, adapters_off
from rlvr_exp.models.parameters import parameters
from rlvr_exp.models.policy import add_adapter
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams

LORA = Adapter(kind="lora", rank=4)
KINDS = [LORA, Adapter(kind="dora", rank=4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("adapter", KINDS, ids=lambda adapter: adapter.kind)
def test_only_the_adapter_learns_and_without_it_the_base_answers(folder, adapter: Adapter) -> None:
    base = loaded(folder)
    policy = loaded(folder, adapter=adapter)
    assert torch.allclose(logits(policy), logits(base), atol=1e-5), "a new adapter changes nothing"
    updated(policy)
    assert not torch.allclose(logits(policy), logits(base), atol=1e-2)
    with adapters_off(policy.model):
        assert torch.equal(logits(policy), logits(base))
    assert not torch.allclose(logits(policy), logits(base), atol=1e-2), "it is on again"
    weights = dict(policy.model.get_base_model().named_parameters())
    for name, value in base.model.named_parameters():
        kept = weights.get(name.replace(".weight", ".base_layer.weight"), weights.get(name))
        assert torch.equal(kept, value) and not kept.requires_grad


def test_what_is_trained_is_two_small_matrices_beside_each_linear_layer(folder) -> None:
    report = parameters(loaded(folder, adapter=LORA).model)
    inputs_and_outputs = 2 * (64 + 64 + 2 * (64 + 32) + 64 + 64 + 3 * (64 + 192))
    assert report.trained == 4 * inputs_and_outputs
    few = parameters(loaded(folder, adapter=Adapter(kind="lora", rank=4, targets=["q_proj", "mlp.up_proj"])).model)
    assert few.trained == 4 * 2 * (64 + 64 + 64 + 192)
    assert {name.split(".")[-4] for name in few.trained_by_part} == {"q_proj", "up_proj"}


@pytest.mark.parametrize(("target", "near"), [("q_prj", "q_proj"), ("embed_tokens", ""), ("attn.q_proj", "q_proj")])
def test_a_target_that_is_no_linear_layer_is_refused(folder, target: str, near: str) -> None:
    with pytest.raises(InputError) as refused:
        loaded(folder, adapter=Adapter(kind="lora", targets=["k_proj", target]))
    (problem,) = refused.value.problems
    assert problem.got == target and problem.suggestion == near and "up_proj" in problem.allowed


def test_initial_weights_follow_from_the_seed_and_the_name_alone(folder) -> None:
    def start(seed: int, drawn: int) -> torch.Tensor:
        torch.manual_seed(9)
        torch.rand(drawn)
        policy = loaded(folder, seed, adapter=LORA)
        after = torch.rand(1)
        torch.manual_seed(9)
        torch.rand(drawn)
        assert torch.equal(after, torch.rand(1)), "the global generator was not moved"
        return torch.cat([value.flatten() for value in adapter_parameters(policy.model, "default")])

    assert torch.equal(start(1, 0), start(1, 5))
    assert not torch.equal(start(1, 0), start(2, 0))


def test_two_adapters_share_a_base_and_the_idle_one_is_untouched(folder) -> None:
    policy = add_adapter(add_adapter(loaded(folder), "writer", LORA, 0), "annotator", LORA, 0)
    model = policy.model
    first, second = (adapter_parameters(model, name) for name in ("writer", "annotator"))
    assert not torch.equal(first[0], second[0]), "each role has its own start"
    for name, busy, idle in (("writer", first, second), ("annotator", second, first)):
        activate(model, name)
        kept = [value.detach().clone() for value in idle]
        moved = [value.detach().clone() for value in busy]
        before = adapter_metrics(model)["adapter/delta"]
        updated(policy)
        assert all(map(torch.equal, idle, kept)) and not any(value.requires_grad for value in idle)
        assert not any(map(torch.equal, busy, moved)) and adapter_metrics(model)["adapter/delta"] > before == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_adapter_samples(folder, dtype: str) -> None:
    policy = updated(loaded(folder, adapter=LORA, dtype=dtype), steps=3)
    prompt = [5, 9, 300]
    ((one,),) = sample_groups(
        policy.model, [prompt], [[(0, "draw")]], SamplingParams(LogitFilters(1.0), 5, policy.eos_ids)
    )
    place = range(len(prompt) - 1, len(prompt) - 1 + len(one.ids))

    def scored() -> torch.Tensor:
        with torch.no_grad():
            scores = policy.model(input_ids=torch.tensor([prompt + list(one.ids)])).logits.float().log_softmax(-1)
        return scores[0, place, list(one.ids)]

    recorded = torch.tensor(one.logprobs)
    assert torch.allclose(scored(), recorded, atol=1e-4 if dtype == "float32" else 0.1)
    with adapters_off(policy.model):
        assert not torch.allclose(scored(), recorded, atol=0.2)


@pytest.mark.parametrize("applied", [["writer"], ["writer", "annotator"]])
def test_cast_adapters_add_what_pefts_forward_pass_adds(folder, applied: list[str], monkeypatch) -> None:
    model = add_adapter(add_adapter(loaded(folder, dtype="bfloat16"), "writer", LORA, 0), "annotator", LORA, 1).model
    inner = model.get_base_model().eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if ".lora_B." in name:
                value.normal_(std=0.1)
    model.base_model.set_adapter(applied)
    ids = torch.tensor([[5, 9, 300, 7], [8, 8, 1, 2]])
    with torch.inference_mode():
        wanted = inner(input_ids=ids).logits
        with model.disable_adapter(), adapters_cast(inner):
            base = inner(input_ids=ids).logits
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError), adapters_cast(inner):
            patch.setattr(Linear, "forward", None)
            found = inner(input_ids=ids).logits
            raise ZeroDivisionError
        assert (found - wanted).abs().mean() < (base - wanted).abs().mean() / 20
        assert torch.equal(inner(input_ids=ids).logits, wanted), "PEFT's forward pass is back after an error"


def test_dora_keeps_pefts_forward_pass(folder) -> None:
    model = updated(loaded(folder, adapter=KINDS[1], dtype="bfloat16")).model.get_base_model().eval()
    ids = torch.tensor([[5, 9, 300]])
    with torch.inference_mode():
        wanted = model(input_ids=ids).logits
        with adapters_cast(model):
            assert torch.equal(model(input_ids=ids).logits, wanted)


def test_norm_and_delta_are_those_of_the_full_matrices(folder, monkeypatch) -> None:
    policy = updated(loaded(folder, adapter=Adapter(kind="lora", rank=4, alpha=12)), steps=2)
    values = torch.cat([value.detach().flatten() for value in adapter_parameters(policy.model, "default")])
    layers = [module for module in policy.model.modules() if hasattr(module, "get_delta_weight")]
    assert len(layers) == 14
    change = sum(layer.get_delta_weight("default").detach().square().sum() for layer in layers)
    transfers = []
    with monkeypatch.context() as patch:
        for name in ("cpu", "tolist", "item", "__float__"):
            own = getattr(torch.Tensor, name)
            patch.setattr(torch.Tensor, name, lambda self, own=own: transfers.append(1) or own(self))
        told = adapter_metrics(policy.model)
    assert len(transfers) == 1
    assert told["adapter/norm"] == pytest.approx(float(values.norm()), rel=1e-5)
    assert told["adapter/delta"] == pytest.approx(float(change.sqrt()), rel=1e-4)
    assert adapter_metrics(loaded(folder).model) == {}


def test_the_norm_of_dora_leaves_its_magnitudes_out(folder) -> None:
    lora, dora = (adapter_metrics(loaded(folder, adapter=adapter).model) for adapter in KINDS)
    assert lora == pytest.approx(dora) and lora["adapter/delta"] == 0 < lora["adapter/norm"]
