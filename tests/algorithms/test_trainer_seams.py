"""The trainer's assumptions about the pinned TRL, and that a step's gradient is that of its weighted loss."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from torch.nn.functional import linear
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig

from rlvr_exp.algorithms import packing_probe
from rlvr_exp.algorithms.packing_probe import Choice
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.batching import BatchLimits
from rlvr_exp.models.policy import Policy

GROUPS, SIZE, PROMPT, ANSWER = 4, 2, 5, 3
EVERYTHING = 1000
"""A limit on tokens that an entire step stays within."""


def policy() -> Policy:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 20,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, pad_token_id=0, eos_token_id=1)
    words = {f"w{index}": index for index in range(20)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w2")), pad_token="w0", eos_token="w1"
    )
    return Policy(Qwen3ForCausalLM(config), tokenizer, (1,), chat=False, thinking=False, max_tokens=64)


def experience(dead: tuple[int, ...] = (), still: tuple[int, ...] = ()) -> TrainingBatch:
    """Four groups of two; the given groups and samples have no advantage. Prompts and completions differ in length."""
    generator = torch.Generator().manual_seed(4)
    prompts = torch.randint(2, 20, (GROUPS, PROMPT), generator=generator).repeat_interleave(SIZE, 0)
    seen = torch.ones_like(prompts)
    seen[2:4, :3] = seen[6:, :1] = 0
    mask = torch.ones(GROUPS * SIZE, ANSWER)
    mask[1, 2:] = mask[4, 1:] = 0
    advantages = torch.randn(GROUPS * SIZE, 1, generator=generator) * mask
    for group in dead:
        advantages[group * SIZE : (group + 1) * SIZE] = 0
    advantages[list(still)] = 0
    return TrainingBatch(
        prompt_ids=prompts * seen,
        prompt_mask=seen,
        completion_ids=torch.randint(2, 20, (GROUPS * SIZE, ANSWER), generator=generator),
        completion_mask=mask.long(),
        sampling_logprobs=torch.zeros(GROUPS * SIZE, ANSWER),
        advantages=advantages,
        weights=mask / mask.sum(),
        group_size=SIZE,
        group_ids=torch.arange(GROUPS).repeat_interleave(SIZE),
    )


def trainer(
    folder, given: TrainingBatch, tokens: int, entropy_coef: float = 0.0, kind: type = PolicyTrainer, **more
) -> tuple[PolicyTrainer, Policy, list[int]]:
    who, asked = policy(), []
    common = dict(
        output_dir=str(folder),
        per_device_train_batch_size=SIZE,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        num_generations=SIZE,
        max_completion_length=ANSWER,
        max_steps=1,
        loss_type="dapo",
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        max_grad_norm=1e9,
        learning_rate=1.0,
    )

    def collect(step: int) -> TrainingBatch:
        asked.append(step)
        return given

    optimizer = torch.optim.SGD(who.model.parameters(), lr=1.0)
    args = GRPOConfig(**{**common, **more})
    return kind(who, args, optimizer, entropy_coef, collect, [], BatchLimits(tokens, PROMPT)), who, asked


def flat(model) -> torch.Tensor:
    return torch.cat([value.detach().flatten().clone() for value in model.parameters()])


def gradient(folder, given: TrainingBatch, tokens: int, entropy_coef: float = 0.0, **more) -> torch.Tensor:
    """The gradient that a step passes to its optimizer, before clipping."""
    made, who, asked = trainer(folder, given, tokens, entropy_coef, **more)
    start = flat(who.model)
    made.train()
    assert asked == [0], "one step asks for one experience"
    return start - flat(who.model)


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


@settings(max_examples=8, deadline=None)
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


def test_groups_without_signal_alone_give_no_gradient(tmp_path):
    assert gradient(tmp_path, experience((0, 1, 2, 3)), 20).abs().max() == 0


def test_samples_whose_gradient_is_zero_are_not_computed(tmp_path):
    made, _, _ = trainer(tmp_path, experience((1,), still=(0, 7)), EVERYTHING)
    parts = made._parts(made._collect(0), range(GROUPS))
    computed = sorted((piece.group, sample) for part in parts for piece in part for sample in piece.samples)
    assert computed == [(0, 1), (2, 0), (2, 1), (3, 0)]


def test_a_sample_without_a_verdict_is_not_computed(tmp_path):
    given = experience()
    weights = given.weights.clone()
    weights[3] = 0
    made, _, _ = trainer(tmp_path, replace(given, weights=weights), EVERYTHING, entropy_coef=0.1)
    parts = made._parts(made._collect(0), range(GROUPS))
    assert (1, 1) not in {(piece.group, sample) for part in parts for piece in part for sample in piece.samples}


@pytest.mark.parametrize("tokens", [EVERYTHING, 20])
def test_row_by_row_gives_the_same_gradient(tmp_path, tokens, monkeypatch):
    given = experience((1,))
    wanted = gradient(tmp_path, given, tokens)
    monkeypatch.setattr("rlvr_exp.algorithms.trainer.choose", lambda *_: Choice(None, ("asked for",)))
    got = gradient(tmp_path, given, tokens)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm()


def test_a_model_that_other_log_probabilities_come_from_is_trained_row_by_row(tmp_path, monkeypatch, caplog):
    def everybody_sees_all(layout, dtype, device):
        sizes = zip(layout.prefixes, layout.widths, strict=True)
        return [torch.zeros(1, 1, width - prefix, width) for prefix, width in sizes]

    monkeypatch.setattr("rlvr_exp.algorithms.packing_attention.segment_masks", everybody_sees_all)
    wanted, got = by_hand(experience()), gradient(tmp_path, experience(), EVERYTHING)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm()
    assert caplog.text.count("one by one") == 1 and "differ by" in caplog.text


def test_a_window_that_training_can_pass_is_found_before_it_is(monkeypatch):
    who = policy().model
    who.config.sliding_window, who.config.use_sliding_window = 64, True
    near, far = (packing_probe.choose(who, longest, torch.device("cpu"), who.dtype) for longest in (64, 65))
    assert near.implementation == "sdpa_packed"
    assert far.implementation is None and "64 tokens" in far.reasons[0]


def test_the_ratio_is_one_where_only_some_tokens_were_kept(tmp_path):
    """Log-probabilities recorded over the kept tokens equal the trainer's: later updates start from a ratio of 1."""
    given = experience()
    generator = torch.Generator().manual_seed(3)
    others = torch.randint(0, 20, (*given.completion_ids.shape, 5), generator=generator)
    kept_token_ids = torch.cat([given.completion_ids[..., None], others], dim=-1)
    kept_token_ids[..., -1] = -1
    made, who, _ = trainer(tmp_path, replace(given, kept_token_ids=kept_token_ids), 25, temperature=0.6)
    made._begin(made.model)
    (got,) = made._of_all(
        made._collect(0),
        lambda inputs: [inputs["rows"].placed(made._score(made.model, inputs["rows"], inputs["support"]).logprobs)],
    )
    ids = torch.cat([given.prompt_ids, given.completion_ids], dim=1)
    mask = torch.cat([given.prompt_mask, given.completion_mask], dim=1)
    logits = who.model(input_ids=ids, attention_mask=mask).logits[:, -ANSWER - 1 : -1] / 0.6
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, kept_token_ids.clamp(min=0), True)
    kept[..., 0] = (kept_token_ids == 0).any(-1)
    wanted = (
        logits.masked_fill(~kept, -torch.inf).log_softmax(-1).gather(-1, given.completion_ids[..., None]).squeeze(-1)
    )
    assert torch.allclose(got, wanted * given.completion_mask, atol=1e-5)


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
    monkeypatch.setattr("rlvr_exp.algorithms.trainer.choose", lambda *_: Choice("sdpa_packed", ()))
    given = experience()
    more = {"gradient_checkpointing": checkpointed, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
    got = gradient(tmp_path, given, 30, **more)
    assert not plain, "oneDNN computes them, forward and again in the backward pass"
    wanted = by_hand(given)
    assert plain and (got - wanted).norm() <= 1e-5 * got.norm()


def test_the_longest_pass_changes_neither_weights_nor_random_numbers(tmp_path):
    made, who, _ = trainer(tmp_path, experience(), 30)
    made._choice = Choice("sdpa_packed", ())
    before, numbers = flat(who.model), torch.get_rng_state()
    made._warm_up(made.model)
    assert (flat(who.model) == before).all() and (torch.get_rng_state() == numbers).all()
    assert all(value.grad is None for value in who.model.parameters())
    assert not made.optimizer.state
