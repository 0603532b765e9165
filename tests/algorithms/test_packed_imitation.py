"""Imitation computes examples in packed rows: its loss, gradient and metrics are those of each example by itself."""

import math
from pathlib import Path
from typing import Any

import fixed_batch
import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from updating import Gradients, driven

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.packed_layers import Choice
from rlvr_exp.algorithms.sft import IGNORED, Example, ImitationTrainer
from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.model import Model
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.stages.sft import batch_plan, trainer_arguments
from rlvr_exp.training.learner import SFTLearner

TOKENS = st.lists(st.integers(2, 19), min_size=2, max_size=12)


@st.composite
def examples(draw) -> Example:
    """Any tokens may be learned, also in several turns, or none."""
    tokens = draw(TOKENS)
    learned = draw(st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens)))
    labels = [token if learn else IGNORED for token, learn in zip(tokens, learned, strict=True)]
    return {"input_ids": tokens, "labels": labels}


def turn(prompt: list[int], answer: list[int]) -> Example:
    return {"input_ids": prompt + answer, "labels": [IGNORED] * len(prompt) + answer}


BATCH = [turn([5, 6, 7, 8], [3, 4, 1]), turn([9, 3], [2, 2, 17, 1]), turn([4] * 9, [11, 1]), turn([6], [7, 8, 9, 1])]
CHARACTERS = 23
"""Of the answers, as their learner is told."""


def trainer(folder: Path, *words: str, passes: int = 1, given: Policy | None = None) -> ImitationTrainer:
    """One step of descent over four examples in so many passes."""
    size = ["algorithm.max_steps=1", "algorithm.batch_size=4", "algorithm.max_sequence_tokens=32"]
    config = compose(["+stage=sft", *size, f"algorithm.max_tokens_per_device={128 // passes}", *words]).config
    policy, plan = given or fixed_batch.policy(folder / "policy"), batch_plan(config)
    assert plan.accumulation == passes
    args = trainer_arguments(policy, config, build(config.algorithm), plan, folder / "scratch")
    args.max_grad_norm = 1e9
    rows, descent = Dataset.from_list(BATCH), torch.optim.SGD(policy.model.parameters(), lr=1.0)
    return ImitationTrainer(policy, args, descent, rows, rows, NonFiniteGuard(), 32)


def stepped(made: ImitationTrainer, batch: list[Example]) -> tuple[torch.Tensor, dict[str, float]]:
    """The gradient and the metrics of a step."""
    seen, rows = Gradients(made.optimizer), []
    learner = SFTLearner("policy", made, 1, CHARACTERS)
    rows = driven(learner, lambda _: batch)
    (found,) = seen.seen
    return found, rows[0]


def by_hand(made: ImitationTrainer, batch: list[Example]) -> tuple[torch.Tensor, float, float]:
    """Gradient, loss and share of most probable tokens of the mean over learned tokens, one example after the other."""
    model, losses, hits = fixed_batch.doubled(made.model), [], []
    for one in batch:
        logits = model(input_ids=torch.tensor([one["input_ids"]])).logits[0, :-1]
        for scores, label in zip(logits, one["labels"][1:], strict=True):
            if label != IGNORED:
                losses.append(-scores.log_softmax(-1)[label])
                hits.append(int(scores.argmax()) == label)
    loss = torch.stack(losses).mean()
    loss.backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()]), loss.item(), sum(hits) / len(hits)


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_a_step_is_the_mean_over_learned_tokens_in_any_number_of_passes(tmp_path, passes):
    made = trainer(tmp_path, passes=passes)
    gradient, loss, accuracy = by_hand(made, BATCH)
    got, row = stepped(made, BATCH)
    assert made._way == "sdpa_packed"
    assert (got - gradient).norm() <= 1e-5 * gradient.norm()
    assert row["loss"] == pytest.approx(loss, rel=1e-5)
    if passes == 1:
        assert row["token_accuracy"] == pytest.approx(accuracy)
    assert row["tokens/seen"] == sum(len(one["input_ids"]) for one in BATCH)


SMALL = {"layers": 2, "hidden": 32, "heads": 2, "context": 64}
BUILT = {
    "sdpa_packed": [
        Scratch(**SMALL, positions="learned", intermediate=64),
        Scratch(**SMALL, positions="none", head_dim=16),
    ],
    None: [Scratch(**SMALL, positions="alibi"), Scratch(**SMALL, window=4, head_dim=16)],
}
"""Models from scratch, by how their examples are packed."""


@pytest.mark.parametrize("way, shape", [(way, shape) for way, shapes in BUILT.items() for shape in shapes])
def test_every_class_from_scratch_learns_what_its_examples_say_one_by_one(tmp_path, way, shape):
    policy = load_policy(Model(from_scratch=True, scratch=shape), seed=1)
    with torch.no_grad():
        for value in policy.model.parameters():
            value.mul_(5)  # Larger weights than at the start: attention matters.
    made = trainer(tmp_path, given=policy)
    gradient, loss, _ = by_hand(made, BATCH)
    got, row = stepped(made, BATCH)
    assert made._way == way
    assert (got - gradient).norm() <= 1e-4 * gradient.norm()
    assert row["loss"] == pytest.approx(loss, rel=1e-5)


def test_accuracy_is_the_share_of_tokens_that_are_the_most_probable(tmp_path):
    made = trainer(tmp_path)
    prompt = [5, 6, 7]
    best = int(made.model(input_ids=torch.tensor([prompt])).logits[0, -1].argmax())
    other = 2 if best != 2 else 3
    right, wrong = turn(prompt, [best]), turn(prompt, [other])
    assert stepped(made, [right, right, right, wrong])[1]["token_accuracy"] == pytest.approx(0.75)


@settings(max_examples=tries(6), deadline=None)
@given(batch=st.lists(examples(), min_size=4, max_size=4).filter(lambda batch: any(map(learns, batch))))
@pytest.mark.slow
def test_any_tokens_may_be_learned(tmp_path_factory, batch):
    made = trainer(tmp_path_factory.mktemp("run"))
    gradient, loss, _ = by_hand(made, batch)
    got, row = stepped(made, batch)
    assert (got - gradient).norm() <= 1e-5 * gradient.norm() + 1e-7
    assert row["loss"] == pytest.approx(loss, rel=1e-5)


def learns(one: Example) -> bool:
    return any(label != IGNORED for label in one["labels"][1:])


def test_a_model_that_cannot_be_packed_learns_the_same(tmp_path, monkeypatch):
    wanted, row = stepped(trainer(tmp_path), BATCH)
    monkeypatch.setattr("rlvr_exp.algorithms.stepped.choose", lambda *_: Choice(None, ("asked for",)))
    got, alone = stepped(trainer(tmp_path), BATCH)
    assert (got - wanted).norm() <= 1e-5 * wanted.norm() and not torch.equal(got, wanted)
    assert alone["loss"] == pytest.approx(row["loss"], rel=1e-5)
    assert alone["token_accuracy"] == row["token_accuracy"] and alone["tokens/seen"] == row["tokens/seen"]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_step_computes_no_linear_layer_by_pytorch_and_no_head_of_a_prompt(tmp_path, monkeypatch, checkpointed):
    made = trainer(tmp_path, f"model.gradient_checkpointing={str(checkpointed).lower()}")
    assert made.args.gradient_checkpointing == checkpointed
    made._begin(made.model)
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda *_: pytest.fail("PyTorch's own linear layer"))
    heads: list[Any] = []
    made.model.lm_head.register_forward_hook(lambda _, given, made: heads.append(given[0]))
    stepped(made, BATCH)
    (head,) = heads
    assert head.shape[-2] == sum(label != IGNORED for one in BATCH for label in one["labels"])


def test_held_out_loss_is_that_of_each_example(tmp_path):
    made = trainer(tmp_path)
    _, loss, _ = by_hand(made, BATCH)
    learned_tokens = sum(label != IGNORED for one in BATCH for label in one["labels"][1:])
    learner = SFTLearner("policy", made, 1, CHARACTERS)
    learner.begin()
    for size in (8, 2, 1):
        made.args.per_device_eval_batch_size = size
        found = learner.held_out_loss()
        assert found["held_out/loss"] == pytest.approx(loss, rel=1e-5), "a token's, in any batches"
        bits = loss * learned_tokens / math.log(2)
        assert found["held_out/bits_per_character"] == pytest.approx(bits / CHARACTERS, rel=1e-5)
    assert len({sum(label != IGNORED for label in one["labels"]) for one in BATCH}) > 1


def test_a_resumed_trainer_packs_as_before(tmp_path, monkeypatch):
    first = trainer(tmp_path)
    stepped(first, BATCH)
    monkeypatch.setattr("rlvr_exp.algorithms.stepped.choose", lambda *_: pytest.fail("chosen again"))
    again = trainer(tmp_path)
    again.load_trainer_state(first.trainer_state())
    stepped(again, BATCH)
    assert again._choice == first._choice


def test_labels_can_be_smoothed(tmp_path):
    """All logits are needed for it, so that the model's own head computes them, row by row."""
    plain = stepped(trainer(tmp_path), BATCH)[1]["loss"]
    made = trainer(tmp_path, "+algorithm.trl.label_smoothing_factor=0.3")
    assert abs(stepped(made, BATCH)[1]["loss"] - plain) > 1e-3 and made._way is None
