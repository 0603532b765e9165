"""The trainer's assumptions about the pinned TRL, and that a step's gradient is that of its weighted loss."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_step import ANSWER, EVERYTHING, GROUPS, SIZE, experience, flat, policy, trainer
from torch.nn.functional import linear
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
from updating import updated

from rlvr_exp.algorithms import packed_layers, packing
from rlvr_exp.algorithms.packed_layers import Choice
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.models.policy import Policy


def gradient(folder, given: TrainingBatch, tokens: int, entropy_coef: float = 0.0, **more) -> torch.Tensor:
    """The gradient that a step passes to its optimizer, before clipping."""
    made = trainer(folder, tokens, entropy_coef, **more)
    start, asked = flat(made.model), []
    updated(made, lambda step: asked.append(step) or given)
    assert asked == [0], "one step asks for one experience"
    return start - flat(made.model)


def by_hand(given: TrainingBatch, entropy_coef: float = 0.0) -> torch.Tensor:
    """The gradient of sum(weight * (-advantage * logprob - coefficient * entropy)): the ratio is 1 on fresh samples."""
    model = policy().model
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -ANSWER - 1 : -1]
    scores = logits.log_softmax(-1)
    entropy = -(scores.exp() * scores).sum(-1)
    logprobs = scores.gather(-1, given.completion_ids.unsqueeze(-1)).squeeze(-1)
    (-(given.weights * (given.advantages * logprobs + entropy_coef * entropy))).sum().backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()])


@settings(max_examples=5, deadline=None)
@given(
    tokens=st.integers(1, 60),
    dead=st.sets(st.integers(0, GROUPS - 1), max_size=GROUPS - 1),
    still=st.sets(st.integers(0, GROUPS * SIZE - 1), max_size=3),
)
def test_a_steps_gradient_is_what_the_weights_say_in_any_split(tmp_path_factory, tokens, dead, still):
    given = experience(tuple(dead), tuple(still))
    wanted, got = by_hand(given), gradient(tmp_path_factory.mktemp("run"), given, tokens)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm() + 1e-8


@pytest.mark.parametrize("tokens", [EVERYTHING, 10])
def test_the_entropy_bonus_has_the_same_weights_in_any_split(tmp_path, tokens):
    given = experience((1,))
    wanted, got = by_hand(given, 0.5), gradient(tmp_path, given, tokens, 0.5)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm()
    assert (got - by_hand(given)).norm() > 1e-2 * wanted.norm(), "the bonus is there"


def log_ratios(given: TrainingBatch) -> torch.Tensor:
    """(N, T) of the current policy to the one that sampled."""
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    with torch.no_grad():
        scores = policy().model(input_ids=ids, attention_mask=mask).logits[:, -ANSWER - 1 : -1].log_softmax(-1)
    logprobs = scores.gather(-1, given.completion_ids.unsqueeze(-1)).squeeze(-1)
    return (logprobs - given.sampling_logprobs) * given.completion_mask


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("tokens", [EVERYTHING, 10])
def test_metrics_of_an_update_are_means_over_its_tokens_in_any_split(tmp_path, tokens, level):
    generator = torch.Generator().manual_seed(7)
    drawn = torch.randn(GROUPS * SIZE, ANSWER, generator=generator) / 5 - 3
    given = replace(experience(), off_policy=True, sampling_logprobs=drawn)
    ratios, weights = log_ratios(given), given.weights / given.weights.sum()
    far = (weights * (ratios.exp() - 1 - ratios)).sum()
    if level == "sequence":
        ratios = ((ratios * weights).sum(1, True) / weights.sum(1, True)).expand_as(ratios)
    low = (weights * ((ratios.exp() < 0.95) & (given.advantages < 0))).sum()
    high = (weights * ((ratios.exp() > 1.05) & (given.advantages > 0))).sum()
    made = trainer(tmp_path, tokens, importance_sampling_level=level, epsilon=0.05, epsilon_high=0.05)
    (row,) = updated(made, lambda _: given)
    wanted = {"kl/old": float(far), "clip/low": float(low), "clip/high": float(high)}
    assert {name: row[name] for name in wanted} == pytest.approx(wanted, abs=1e-5)
    assert low + high > 0 and far > 0


def test_groups_without_signal_alone_give_no_gradient(tmp_path):
    assert gradient(tmp_path, experience((0, 1, 2, 3)), 20).abs().max() == 0


def test_samples_whose_gradient_is_zero_are_not_computed(tmp_path):
    parts = trainer(tmp_path, EVERYTHING)._parts(experience((1,), still=(0, 7)), range(GROUPS))
    computed = sorted((piece.group, sample) for part in parts for piece in part for sample in piece.samples)
    assert computed == [(0, 1), (2, 0), (2, 1), (3, 0)]


def test_a_sample_without_a_verdict_is_not_computed(tmp_path):
    given = experience()
    weights = given.weights.clone()
    weights[3] = 0
    made = trainer(tmp_path, EVERYTHING, entropy_coef=0.1)
    parts = made._parts(replace(given, weights=weights), range(GROUPS))
    assert (1, 1) not in {(piece.group, sample) for part in parts for piece in part for sample in piece.samples}


@pytest.mark.parametrize("tokens", [EVERYTHING, 20])
def test_row_by_row_gives_the_same_gradient(tmp_path, tokens, monkeypatch):
    given = experience((1,))
    wanted = gradient(tmp_path, given, tokens)
    monkeypatch.setattr("rlvr_exp.algorithms.stepped.choose", lambda *_: Choice(None, ("asked for",)))
    got = gradient(tmp_path, given, tokens)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm()


def test_a_model_that_other_log_probabilities_come_from_is_trained_row_by_row(tmp_path, monkeypatch, caplog):
    own = packing._batches

    def everybody_sees_all(layout, dtype):
        found = own(layout, dtype)
        return [one if one.mask is None else replace(one, mask=torch.zeros_like(one.mask)) for one in found]

    monkeypatch.setattr(packing, "_batches", everybody_sees_all)
    wanted, got = by_hand(experience()), gradient(tmp_path, experience(), EVERYTHING)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm()
    assert caplog.text.count("one by one") == 1 and "differ by" in caplog.text


def test_a_window_that_training_can_pass_is_found_before_it_is(monkeypatch):
    who = policy().model
    who.config.sliding_window, who.config.use_sliding_window = 64, True
    near, far = (packed_layers.choose(who, longest, torch.device("cpu"), who.dtype) for longest in (64, 65))
    assert near.implementation == "sdpa_packed"
    assert far.implementation is None and "64 tokens" in far.reasons[0]


def test_the_ratio_is_one_where_only_some_tokens_were_kept(tmp_path):
    """Log-probabilities recorded over the kept tokens equal the trainer's: later updates start from a ratio of 1."""
    given = experience()
    generator = torch.Generator().manual_seed(3)
    others = torch.randint(0, 20, (*given.completion_ids.shape, 5), generator=generator)
    kept_token_ids = torch.cat([given.completion_ids[..., None], others], dim=-1)
    kept_token_ids[..., -1] = -1
    made = trainer(tmp_path, 25, temperature=0.6)
    made._begin(made.model)
    (got,) = made._of_all(
        replace(given, kept_token_ids=kept_token_ids),
        lambda inputs: [inputs["rows"].placed(made._score(made.model, inputs["rows"], inputs["support"]).logprobs)],
    )
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    logits = made.model(input_ids=ids, attention_mask=mask).logits[:, -ANSWER - 1 : -1] / 0.6
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, kept_token_ids.clamp(min=0), True)
    kept[..., 0] = (kept_token_ids == 0).any(-1)
    wanted = (
        logits.masked_fill(~kept, -torch.inf).log_softmax(-1).gather(-1, given.completion_ids[..., None]).squeeze(-1)
    )
    assert torch.allclose(got, wanted * given.completion_mask, atol=1e-5)


def test_rows_are_built_without_reading_back_from_the_device(tmp_path, monkeypatch):
    def on_the_device(self, *given):
        found = own(self, *given)
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
        return found | {name: found[name].to("meta") for name in names}

    own = PolicyTrainer._inputs
    monkeypatch.setattr(PolicyTrainer, "_inputs", on_the_device)
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: pytest.fail("a transfer to the host"))
    made = trainer(tmp_path, EVERYTHING)
    made._begin(made.model)
    part = made._parts(experience(), range(GROUPS))[0]
    inputs = made._micro_batch(experience(), part)
    assert torch.isfinite(made._score(made.model, inputs["rows"]).logprobs).all()


def test_a_batch_is_prepared_once_and_before_it_is_split(tmp_path):
    prepared = []

    class Prepares(PolicyTrainer):
        def _prepared(self, experience):
            prepared.append(experience)
            return replace(experience, advantages=experience.advantages * 2)

    given = experience()
    got = gradient(tmp_path, given, 12, kind=Prepares)
    assert len(prepared) == 1
    assert (got - 2 * by_hand(given)).norm() <= 1e-5 * got.norm()


@pytest.mark.parametrize("checkpointed", [False, True])
def test_no_linear_layer_of_a_step_takes_pytorchs_way(tmp_path, monkeypatch, checkpointed):
    plain = []

    def own(layer: torch.nn.Linear, given: torch.Tensor) -> torch.Tensor:
        plain.append(layer)
        return linear(given, layer.weight)

    monkeypatch.setattr(torch.nn.Linear, "forward", own)
    monkeypatch.setattr("rlvr_exp.algorithms.stepped.choose", lambda *_: Choice("sdpa_packed", ()))
    given = experience()
    more = {"gradient_checkpointing": checkpointed, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
    got = gradient(tmp_path, given, 30, **more)
    assert not plain, "oneDNN computes them, forward and again in the backward pass"
    wanted = by_hand(given)
    assert plain and (got - wanted).norm() <= 1e-5 * got.norm()


def test_the_longest_pass_changes_neither_weights_nor_random_numbers(tmp_path):
    made = trainer(tmp_path, 30)
    made._choice = Choice("sdpa_packed", ())
    before, numbers = flat(made.model), torch.get_rng_state()
    with torch.no_grad():  # As before a first scoring.
        made._warm_up(made.model)
    assert (flat(made.model) == before).all() and (torch.get_rng_state() == numbers).all()
    assert all(value.grad is None for value in made.model.parameters())
    assert not made.optimizer.state


def test_a_routers_loss_does_not_grow_with_the_number_of_passes(tmp_path, monkeypatch):
    def routed() -> Policy:
        torch.manual_seed(0)
        shape = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8}
        experts = {"num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 8, "decoder_sparse_step": 1}
        config = Qwen3MoeConfig(**shape, **experts, num_key_value_heads=1, output_router_logits=True)
        config.router_aux_loss_coef = 1.0
        return replace(plain, model=Qwen3MoeForCausalLM(config))

    plain, given = policy(), experience()
    given = replace(given, advantages=given.advantages * 1e-9)
    monkeypatch.setattr("tiny_step.policy", routed)
    whole, cut = (gradient(tmp_path / str(tokens), given, tokens).norm() for tokens in (EVERYTHING, 10))
    # Of few tokens it is larger by itself, here 2.3 times; eight passes would add up to 18 times.
    assert whole > 1e-4 and 0.5 < cut / whole < 4
