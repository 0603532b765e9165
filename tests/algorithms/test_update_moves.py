"""What any update moves: exactly the trained parameters that have a gradient, towards the answers with positive
advantage."""

from functools import cache

import fixed_batch as batch
import pytest
import torch
from fixed_batch import PROMPTS
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from updating import Gradients, updated

ALGORITHMS = ("grpo", "dr_grpo", "dapo", "cispo", "gspo", "rloo")
RATE = 1e-3
PARAMETERS = 14
REWARD = st.sampled_from([0.0, 0.1, 0.5, 1.0])
ROWS = st.lists(st.lists(st.none() | REWARD, min_size=3, max_size=3), min_size=3, max_size=3)


@cache
def algorithm(name: str):
    """Without a penalty, which pulls elsewhere than the advantages."""
    return batch.algorithm(name, "algorithm.kl_coef=0")


def sampled(folder, name, rewards):
    """The batch of an update by the policy that drew it."""
    recorded = batch.drawn_from(batch.policy(folder / "same").model, 0.0)
    return algorithm(name).experience(batch.groups(algorithm(name), recorded, rewards, sampled_at=1), 0)


def update(folder, name, experience, frozen=()):
    """(log-probabilities before and after, numbers of moved parameters, of those whose gradient is not lost in
    rounding)"""
    made = batch.trainer(folder, algorithm(name), lr=RATE, frozen=frozen)
    before = [value.detach().clone() for value in made.model.parameters()]
    old, seen = logprobs(made.model), Gradients(made.optimizer)
    nonzero = []
    made.optimizer.register_step_pre_hook(
        lambda *_: nonzero.extend(
            n
            for n, value in enumerate(made.model.parameters())
            if value.grad is not None and not torch.equal(value - RATE * value.grad, value)
        )
    )
    updated(made, lambda _: experience)
    assert len(seen.seen) == 1
    moved = [n for n, value in enumerate(made.model.parameters()) if not torch.equal(value, before[n])]
    return old, logprobs(made.model), moved, nonzero


@torch.no_grad()
def logprobs(model) -> torch.Tensor:
    """(N, T), padded with zeros."""
    rows = [
        batch.logprobs(batch.doubled(model), PROMPTS[p], one) for p, row in enumerate(batch.answers()) for one in row
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@pytest.mark.property(14)
@settings(max_examples=5, deadline=None)
@given(
    name=st.sampled_from(ALGORITHMS),
    rewards=ROWS,
    frozen=st.sets(st.integers(0, PARAMETERS - 1), max_size=PARAMETERS - 3),
)
def test_exactly_what_has_a_gradient_moves_and_answers_with_advantage_gain(tmp_path_factory, name, rewards, frozen):
    """By the weights of the loss the log-probability of what has a positive advantage rises, and falls of what has a
    negative one: together they rise by the rate times the squared gradient."""
    folder = tmp_path_factory.mktemp("run")
    seen = sampled(folder, name, rewards)
    assume(bool((seen.advantages * seen.weights).any()))
    old, new, moved, nonzero = update(folder, name, seen, sorted(frozen))
    assert moved == nonzero and moved and not set(moved) & frozen
    gain = ((new - old) * (seen.advantages * seen.weights)[:, : old.shape[1]]).sum()
    assert gain > 0


@pytest.mark.property(14)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_one_answer_with_a_positive_advantage_gains(tmp_path, name):
    rewards = [[0.3] * 3, [0.0, 1.0, 0.0], [0.3] * 3]
    seen = sampled(tmp_path, name, rewards)
    old, new, _, _ = update(tmp_path, name, seen)
    best = 4
    assert (seen.advantages[best] > 0).any()
    assert ((new - old)[best] * seen.weights[best, : old.shape[1]]).sum() > 0
