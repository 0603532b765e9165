"""A policy and its value as one module: its outputs, what is saved of it and what can be loaded."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.core.errors import InputError
from rlvr_exp.models.value_head import OWN, SHARED, ActorCritic, with_value

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def policy() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = dict(vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    return Qwen3ForCausalLM(Qwen3Config(**shape, num_key_value_heads=1, head_dim=8))


def taught(trunk: str) -> ActorCritic:
    """A value that differs at every position."""
    critic = with_value(policy(), trunk)
    torch.manual_seed(1)
    torch.nn.init.normal_(critic.value.output.weight)
    return critic


@pytest.mark.parametrize("trunk", [SHARED, OWN])
def test_it_returns_what_the_policy_returns_and_a_value_of_every_position(trunk):
    critic, alone = taught(trunk), policy()
    got = critic(input_ids=IDS)
    hidden = alone.model(IDS).last_hidden_state
    assert torch.equal(got.logits, alone(IDS).logits)
    assert got.value.shape == IDS.shape and got.value.dtype == torch.float32
    assert torch.allclose(got.value, critic.value.output(hidden).squeeze(-1), atol=1e-6)


def test_a_fresh_value_is_zero_everywhere():
    assert (with_value(policy(), SHARED)(input_ids=IDS).value == 0).all()


def test_a_value_sees_only_what_came_before_it():
    critic = taught(SHARED)
    other = IDS.clone()
    other[:, 3] = 7
    a, b = critic(input_ids=IDS).value, critic(input_ids=other).value
    assert torch.equal(a[:, :3], b[:, :3]) and (a[:, 3:] != b[:, 3:]).all()


@pytest.mark.parametrize("trunk", [SHARED, OWN])
def test_a_loss_of_the_values_reaches_the_policy_only_where_they_share_a_trunk(trunk):
    critic = taught(trunk)
    critic(input_ids=IDS).value.sum().backward()
    reached = {name for name, value in critic.policy.named_parameters() if value.grad is not None}
    assert bool(reached) == (trunk == SHARED)
    assert all(value.grad is not None for value in critic.value.parameters())


@pytest.mark.parametrize("trunk", [SHARED, OWN])
def test_the_policy_loads_plainly_and_the_value_beside_it_says_the_same(tmp_path: Path, trunk):
    critic = taught(trunk)
    with torch.no_grad():
        for value in critic.value.parameters():
            value.add_(0.01)
    critic.policy.save_pretrained(tmp_path)
    critic.value.save(tmp_path)
    plain, loading = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(loading.values()), loading
    again = with_value(plain, trunk)
    assert again.value.load(tmp_path)
    assert torch.equal(again(input_ids=IDS).value, critic(input_ids=IDS).value)
    assert torch.equal(plain(IDS).logits, policy()(IDS).logits)


def test_a_folder_without_a_value_leaves_it_as_it_is(tmp_path: Path):
    critic = with_value(policy(), SHARED)
    assert not critic.value.load(tmp_path)
    assert (critic(input_ids=IDS).value == 0).all()


def test_a_value_of_another_trunk_is_refused_with_the_option_that_fits(tmp_path: Path):
    taught(OWN).value.save(tmp_path)
    with pytest.raises(InputError, match="algorithm.value_trunk=own"):
        with_value(policy(), SHARED).value.load(tmp_path)


def test_a_value_on_an_adapted_policy_keeps_the_base_frozen(tmp_path: Path):
    from peft import LoraConfig, get_peft_model

    critic = with_value(
        get_peft_model(policy(), LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")), OWN
    )
    critic(input_ids=IDS).value.sum().backward()
    learned = [name for name, value in critic.value.named_parameters() if value.grad is not None]
    assert all("lora_" in name or name.startswith("output.") for name in learned) and len(learned) > 2
    critic.value.save(tmp_path)
    assert critic.value.load(tmp_path)
