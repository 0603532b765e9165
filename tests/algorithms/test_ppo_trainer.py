"""PPO's update on a tiny policy: its gradient by hand, the weights that each loss moves, and the use of a batch."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from tiny_ppo import ANSWER, EVERYTHING, GROUPS, ONCE, SIZE, algorithm, batch, groups, policy, trained, trainer, weights

from rlvr_exp.algorithms.loss import SamplingCorrection
from rlvr_exp.algorithms.optimizers import AdamW, Muon
from rlvr_exp.algorithms.packed_layers import Choice
from rlvr_exp.algorithms.ppo import add_value_weights, collected, estimated
from rlvr_exp.config.model import Adapter
from rlvr_exp.models.adapters import new_adapter
from rlvr_exp.models.value_head import OWN, SHARED, with_value


def logits_and_values(critic, given):
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    output = critic(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0))
    at = slice(-given.completion_ids.shape[1] - 1, -1)
    return output.logits[:, at].log_softmax(-1), output.value[:, at]


def by_hand(ppo, silent=(), who=None) -> torch.Tensor:
    """The first update's gradient: rho is 1 and the value is unchanged, so that no clip acts. GAE is written out, in float64."""
    critic, given = with_value((who or policy()).model, ppo.value_trunk).double(), batch(ppo, silent=silent)
    scores, values = logits_and_values(critic, given)
    logprobs = scores.gather(-1, given.completion_ids.unsqueeze(-1)).squeeze(-1)
    advantages, returns = torch.zeros_like(values), torch.zeros_like(values)
    for row, mask in enumerate(given.completion_mask):
        reward = 0.0 if math.isnan(given.rewards[row]) else float(given.rewards[row])
        old, n = values[row].detach().tolist(), int(mask.sum())
        delta = [(reward if t == n - 1 else ppo.gamma * old[t + 1]) - old[t] for t in range(n)]
        for t in range(n):
            advantages[row, t] = sum((ppo.gamma * ppo.gae_lambda) ** (k - t) * delta[k] for k in range(t, n))
            returns[row, t] = advantages[row, t] + old[t]
    counted = given.completion_mask.bool() & ~given.rewards.isnan()[:, None]
    if ppo.whiten_advantages:
        kept = advantages[counted]
        advantages = (advantages - kept.mean()) / (kept.std(correction=0) + 1e-8)
    entropy = -(scores.exp() * scores).sum(-1)
    loss = -advantages * logprobs + ppo.value_coef * (values - returns).square() / 2 - ppo.entropy_coef * entropy
    (loss[counted].sum() / counted.sum()).backward()
    return torch.cat([torch.zeros(w.numel()) if w.grad is None else w.grad.flatten() for w in critic.parameters()])


def moved(tmp_path, ppo, silent: tuple[int, ...] = (), **more) -> torch.Tensor:
    """The change of the weights by a plain step at rate 1: the gradient."""
    made = trainer(tmp_path, ppo, **more)
    before = weights(made.model)
    trained(made, ppo, silent)
    return before - weights(made.model)


@settings(max_examples=tries(6), deadline=None)
@given(
    tokens=st.integers(1, 60),
    trunk=st.sampled_from([SHARED, OWN]),
    whiten=st.booleans(),
    entropy=st.sampled_from([0.0, 0.3]),
    silent=st.sets(st.integers(0, GROUPS * SIZE - 1), max_size=4),
)
def test_an_updates_gradient_is_the_papers_in_any_split(tmp_path_factory, tokens, trunk, whiten, entropy, silent):
    options = {
        "value_trunk": trunk,
        "whiten_advantages": whiten,
        "entropy_coef": entropy,
        "gae_lambda": 0.7,
        "gamma": 0.9,
    }
    ppo = algorithm(**ONCE, **options)
    wanted = by_hand(ppo, tuple(silent))
    got = moved(tmp_path_factory.mktemp("run"), ppo, tokens=tokens, silent=tuple(silent))
    assert wanted.norm() > 1e-3 and (got - wanted).norm() <= 1e-6 * wanted.norm()


def parts_moved(tmp_path, decay: float = 0.0, **options) -> dict[str, bool]:
    ppo = algorithm(**{**ONCE, **options})
    made = trainer(tmp_path, ppo, lr=0.1, decay=decay)
    before = {name: value.detach().clone() for name, value in made.model.named_parameters()}
    trained(made, ppo)
    changed = {name: not torch.equal(value, before[name]) for name, value in made.model.named_parameters()}
    if trunk := [same for name, same in changed.items() if name.startswith("value.trunk.layers")]:
        assert len(set(trunk)) == 1, changed
    policy_moved = {same for name, same in changed.items() if name.startswith("policy.model.layers")}
    assert len(policy_moved) == 1, changed
    return {"policy": policy_moved.pop(), "head": changed["value.output.weight"], "trunk": any(trunk)}


@pytest.mark.property(14)
def test_a_step_updates_policy_and_value_together(tmp_path):
    assert parts_moved(tmp_path) == {"policy": True, "head": True, "trunk": False}
    # The head starts at zero: from the second update on its loss reaches its own trunk.
    assert parts_moved(tmp_path, value_trunk=OWN, max_steps=2, iterations=2) == {
        "policy": True,
        "head": True,
        "trunk": True,
    }


@pytest.mark.property(14)
@pytest.mark.parametrize("trunk", [SHARED, OWN])
def test_while_the_value_warms_up_the_policy_is_bit_equal(tmp_path, trunk):
    """Including weight decay: weights without a gradient are not touched."""
    found = parts_moved(tmp_path, 0.1, value_trunk=trunk, value_warmup_steps=2, max_steps=2, iterations=2)
    assert found == {"policy": False, "head": True, "trunk": trunk == OWN}
    assert parts_moved(tmp_path, value_trunk=trunk, value_warmup_steps=1, max_steps=2, iterations=2)["policy"]


@pytest.mark.property(14)
def test_a_batch_without_a_verdict_moves_nothing(tmp_path):
    assert moved(tmp_path, algorithm(**ONCE), silent=tuple(range(GROUPS * SIZE))).abs().max() == 0


@pytest.mark.property(14)
def test_the_values_loss_leaves_a_policy_with_its_own_trunk_as_it_is(tmp_path):
    """With advantages of zero the policy has no loss, whatever the value's loss."""
    ppo = algorithm(**{**ONCE, "value_trunk": OWN, "max_steps": 2, "iterations": 2})
    made = trainer(tmp_path, ppo, lr=0.1)
    given = made._prepared
    made._prepared = lambda experience: silenced(given(experience))
    before, value = weights(made._critic.policy), weights(made._critic.value)
    trained(made, ppo)
    assert torch.equal(weights(made._critic.policy), before)
    assert not torch.equal(weights(made._critic.value), value)


def silenced(experience):
    return replace(experience, advantages=torch.zeros_like(experience.advantages))


def test_the_values_rate_is_its_own(tmp_path):
    algorithms = algorithm(**ONCE), algorithm(**ONCE, value_lr=0.2)
    usual, other = (trainer(tmp_path, ppo, lr=0.1) for ppo in algorithms)
    for made, ppo in zip((usual, other), algorithms, strict=True):
        trained(made, ppo)
    assert torch.equal(weights(usual._critic.policy), weights(other._critic.policy))
    assert torch.allclose(2 * weights(usual._critic.value), weights(other._critic.value))


RATES = {"lr": 0.1, "weight_decay": 0.5, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}


@pytest.mark.parametrize("choice", [AdamW(**RATES), Muon(**RATES, matrix_lr=0.02, momentum=0.9)], ids=["adamw", "muon"])
@pytest.mark.parametrize("lr", [0.0, 0.3])
def test_the_values_weights_join_any_optimizer_and_a_trunks_matrices_decay_as_the_policys(choice, lr):
    critic = with_value(policy().model, OWN)
    optimizer = choice.make(critic.policy)
    policys = optimizer.param_groups[0]["weight_decay"]
    add_value_weights(optimizer, critic, lr)
    held = {id(value): group for group in optimizer.param_groups for value in group["params"]}
    assert set(held) == {id(value) for value in critic.parameters()}
    for name, value in critic.value.named_parameters():
        decays = value.ndim >= 2 and not name.startswith("output")
        assert held[id(value)]["lr"] == (lr or 0.1) and held[id(value)]["weight_decay"] == (
            policys if decays else 0.0
        ), name
    before = weights(critic.value)
    critic(input_ids=torch.tensor([[3, 4, 5]])).value.sum().backward()
    optimizer.step()
    assert not torch.equal(weights(critic.value), before)


def test_every_pass_and_minibatch_is_an_update_on_one_batch(tmp_path):
    ppo = algorithm(iterations=3, minibatches=2, kl_coef=0.0, max_steps=12)
    made = trainer(tmp_path, ppo, lr=0.01)
    seen = []
    cut = made._minibatches
    made._minibatches = lambda experience: seen.append(cut(experience)) or seen[-1]
    _, asked = trained(made, ppo)
    assert asked == [0, 6] and made.state.global_step == 12
    for parts in seen:
        assert [len(part) for part in parts] == [2, 2] and sorted(parts[0] + parts[1]) == list(range(GROUPS))
    assert seen[0] != seen[1], "another cut for another batch"


def test_minibatches_add_up_to_the_batch(tmp_path):
    """At fixed weights, the mean of their gradients is the gradient of the entire batch."""
    whole, ppo = algorithm(**ONCE), algorithm(**ONCE, minibatches=2)
    made = trainer(tmp_path, ppo)
    made._choice = trainer(tmp_path, whole)._choice
    given = made._prepared(batch(ppo))
    found = []
    for part in made._minibatches(given):
        made.model.zero_grad()
        for piece in made._parts(given, part):
            made._compute_loss(made.model, made._micro_batch(given, piece)).backward()
        found.append(torch.cat([w.grad.flatten() for w in made.model.parameters()]))
    wanted = by_hand(whole)
    assert (sum(found) / 2 - wanted).norm() <= 1e-5 * wanted.norm()


def test_from_the_second_update_on_clips_hold_back_and_metrics_say_so(tmp_path):
    ppo = algorithm(kl_coef=0.0, value_coef=1.0, max_steps=4, clip_low=0.05, clip_high=0.05)
    (first, *later), _ = trained(trainer(tmp_path, ppo, lr=0.3), ppo)
    assert first["clip/low"] == first["clip/high"] == first["value/clipped"] == 0
    assert abs(first["kl/old"]) < 1e-9 and all(row["kl/old"] > 0 for row in later)
    assert any(row["clip/low"] + row["clip/high"] > 0 for row in later)
    assert any(row["value/clipped"] > 0 for row in later)
    assert "value/explained_variance" in first and "value/explained_variance" not in later[0], "once a batch"


def test_replayed_groups_are_weighted_by_what_the_policy_of_the_day_thinks_of_them(tmp_path):
    ppo = algorithm(
        **{**ONCE, "replay_steps": 2, "replay_prompts": 3, "replay_max_weight": 1.5, "max_steps": 3},
        whiten_advantages=False,
    )
    made = trainer(tmp_path, ppo, lr=0.05)
    told, take = [], made.take
    made.take = lambda given: told.append(take(given))
    _, asked = trained(made, ppo)
    assert [one.prompts for one in told] == [GROUPS, GROUPS + 3, GROUPS + 3] and asked == [0, 1, 2]
    last = told[-1]
    fresh, old = slice(None, GROUPS * SIZE), slice(GROUPS * SIZE, None)
    live = last.completion_mask[old] > 0
    ratio = (last.old_logprobs - last.sampling_logprobs).exp()[old][live].clamp(max=1.5)
    assert (last.importance[fresh] == 1).all()
    assert torch.allclose(last.importance[old][live], ratio) and (ratio < 1.5).any() and (ratio != 1).all()
    assert set(last.group_ids[old].tolist()) <= {one.id for step in (0, 1) for one in groups(step)}


def test_a_penalty_in_the_reward_lowers_it_by_the_log_ratio(tmp_path):
    ppo = algorithm(kl_coef=0.5, gae_lambda=1.0, whiten_advantages=False)
    given = batch(ppo)
    logprobs, values = torch.randn_like(given.returns), torch.zeros_like(given.returns)
    reference = torch.randn_like(given.returns)
    with_penalty = estimated(given, logprobs, values, reference, ppo)
    without = estimated(given, logprobs, values, None, ppo)
    cost = 0.5 * (logprobs - reference) * given.completion_mask
    ahead = cost.flip(1).cumsum(1).flip(1) * given.completion_mask
    assert torch.allclose(with_penalty.returns, without.returns - ahead, atol=1e-6)


def test_a_sample_without_a_verdict_has_no_weight_and_no_part_in_the_whitening():
    ppo = algorithm(**ONCE)
    all_judged, one_silent = batch(ppo), batch(ppo, silent=(3,))
    assert (one_silent.weights[3] == 0).all() and (all_judged.weights[3] > 0).any()
    values = torch.zeros_like(all_judged.returns)
    got = estimated(one_silent, values, values, None, ppo)
    kept = got.advantages[(one_silent.weights > 0)]
    assert kept.mean().abs() < 1e-6 and (got.advantages[3] == 0).all()


def test_one_weight_for_every_token_of_a_batch():
    given = collected(groups(), GROUPS, 0, algorithm())
    assert torch.allclose(given.weights, given.completion_mask / given.completion_mask.sum())
    assert given.completion_ids.shape[1] == ANSWER and given.completion_ids.numel() < EVERYTHING


def test_a_value_saved_with_the_policys_checkpoint_is_resumed(tmp_path):
    first = trainer(tmp_path, algorithm(**ONCE), lr=0.1)
    trained(first, algorithm(**ONCE))
    first.checkpoint_parts["value"].save(tmp_path)
    again = trainer(tmp_path, algorithm(**ONCE, checkpoint=str(tmp_path)))
    assert weights(again.checkpoint_parts["value"]).abs().sum() > 0
    assert torch.equal(weights(again.checkpoint_parts["value"]), weights(first.checkpoint_parts["value"]))
    assert (weights(trainer(tmp_path, algorithm(**ONCE)).checkpoint_parts["value"]) == 0).all()


def test_minibatches_beyond_the_groups_are_empty_updates(tmp_path):
    ppo = algorithm(**{**ONCE, "minibatches": GROUPS + 2, "max_steps": GROUPS + 2})
    made = trainer(tmp_path, ppo, lr=0.1)
    before = weights(made.model)
    _, asked = trained(made, ppo)
    assert asked == [0] and not torch.equal(weights(made.model), before)
    assert torch.isfinite(weights(made.model)).all()


@pytest.mark.parametrize("kl_in", ["reward", "loss"])
def test_the_reference_of_an_adapter_is_its_base_and_only_adapter_and_value_move(tmp_path, kl_in):
    plain = policy()
    who = replace(
        plain, model=new_adapter(plain.model, Adapter(kind="lora", rank=2, targets=["q_proj", "v_proj"]), seed=0)
    )
    ppo = algorithm(kl_coef=0.1, kl_in=kl_in, iterations=2, max_steps=4)
    made = trainer(tmp_path, ppo, lr=1.0, who=who)
    before = {name: value.detach().clone() for name, value in made.model.named_parameters()}
    rows, _ = trained(made, ppo)
    moved = {name for name, value in made.model.named_parameters() if not torch.equal(value, before[name])}
    assert moved and all("lora_" in name or name.startswith("value.") for name in moved)
    distances = [row["kl"] for row in rows if "kl" in row]
    assert abs(distances[0]) < 1e-9 and distances[-1] > 1e-7, "from the base, which stays where it is"


@pytest.mark.parametrize("packed", [True, False])
def test_the_gradient_of_an_adapter_and_its_value_is_the_papers(tmp_path, packed):
    def adapted():
        plain = policy()
        made = replace(plain, model=new_adapter(plain.model, Adapter(kind="lora", rank=2), seed=0))
        draw = torch.Generator().manual_seed(1)
        for name, value in made.model.named_parameters():
            if "lora_" in name:
                value.data += 0.3 * torch.randn(value.shape, generator=draw)
        made.model.double()
        return made

    ppo = algorithm(**ONCE, gae_lambda=0.7, entropy_coef=0.3)
    made = trainer(tmp_path, ppo, who=adapted(), tokens=24)
    if not packed:
        made._choice = Choice(None, ())
    before = weights(made.model)
    trained(made, ppo)
    got, wanted = before - weights(made.model), by_hand(ppo, who=adapted())
    assert (made._way is not None) == packed
    assert wanted.norm() > 1e-3 and (got - wanted).norm() <= 1e-6 * wanted.norm()


@pytest.mark.parametrize("processes", [2, 5])
def test_each_process_estimates_its_share_and_the_sum_is_that_of_one(tmp_path, processes):
    ppo = algorithm(**ONCE)
    made = trainer(tmp_path, ppo, tokens=12)
    made._begin(made.model)
    given, own, passes = batch(ppo), made.accelerator, []

    def estimates(index, count):
        made.accelerator = SimpleNamespace(
            num_processes=count, process_index=index, device=own.device, autocast=own.autocast, reduce=lambda x, _: x
        )
        passes.append(0)

        def read(inputs):
            passes[-1] += 1
            return made._now(inputs)

        return made._of_all(given, read)

    wanted = estimates(0, 1)
    shares = [estimates(index, processes) for index in range(processes)]
    for place, whole in enumerate(wanted):
        assert torch.allclose(sum(share[place] for share in shares), whole, atol=1e-6)
    assert len(set(passes[1:])) == 1 and passes[1] <= -(-passes[0] // processes) + 1 < passes[0]


def test_fresh_samples_of_another_engine_are_weighted(tmp_path):
    ppo = algorithm(**ONCE)
    made = trainer(tmp_path, ppo)
    made.correction = SamplingCorrection("token_truncate", 2.0)
    trained(made, ppo)
    (inputs,) = made._updates[0]
    counted = inputs["completion_mask"].bool()
    ratios = (inputs["old_logprobs"] - inputs["sampling_logps"]).exp()[counted]
    assert torch.allclose(inputs["importance"][counted], ratios.clamp(max=2.0)) and ratios.max() > 1.05
