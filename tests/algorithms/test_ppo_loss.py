"""PPO's losses of single tokens against the equations, evaluated naively in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.loss import clipped, importance_weights, kl_estimate, surrogate_loss, value_loss

logprob = st.floats(-4, 0)
advantage = st.floats(-3, 3)
clip = st.floats(0, 0.9)


def tensor(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


@pytest.mark.property(10)
@given(logprob, logprob, advantage, clip, clip)
def test_the_surrogate_is_the_papers_and_never_promises_more_than_the_clip(new, old, gain, low, high):
    ratio = math.exp(new - old)
    loss = surrogate_loss(tensor(new), tensor(old), tensor(gain), low, high).item()
    assert loss == pytest.approx(-min(ratio * gain, min(max(ratio, 1 - low), 1 + high) * gain), abs=1e-9)
    assert -loss <= ratio * gain + 1e-9, "a lower bound of the unclipped objective"
    assert -loss <= (1 + high) * gain + 1e-9 if gain > 0 else -loss <= (1 - low) * gain + 1e-9


@pytest.mark.property(10)
@given(logprob, logprob, advantage.filter(lambda gain: abs(gain) > 1e-3), clip, clip)
def test_past_the_clip_there_is_no_gradient_and_within_it_is_the_ratios(new, old, gain, low, high):
    at = tensor(new)
    loss = surrogate_loss(at, tensor(old), tensor(gain), low, high)
    loss.backward()
    ratio = math.exp(new - old)
    below, above = (bool(part) for part in clipped(at, tensor(old), tensor(gain), low, high))
    assert (below, above) == (ratio < 1 - low and gain < 0, ratio > 1 + high and gain > 0)
    if below or above:
        assert at.grad == 0
    elif abs(ratio - (1 - low)) > 1e-9 and abs(ratio - (1 + high)) > 1e-9:
        assert at.grad.item() == pytest.approx(-ratio * gain, rel=1e-9)


@pytest.mark.property(10)
@given(advantage, advantage, advantage, st.floats(1e-3, 2))
def test_a_value_past_its_clip_learns_only_back_towards_its_return(new, old, wanted, limit):
    at = tensor(new)
    loss = value_loss(at, tensor(old), tensor(wanted), limit)
    near = min(max(new, old - limit), old + limit)
    assert loss.item() == pytest.approx(max((new - wanted) ** 2, (near - wanted) ** 2) / 2, abs=1e-9)
    loss.backward()
    if (near - wanted) ** 2 > (new - wanted) ** 2 + 1e-9:
        assert at.grad == 0
    assert value_loss(at, tensor(old), tensor(wanted), 0).item() == pytest.approx((new - wanted) ** 2 / 2, abs=1e-9)


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=5), st.lists(st.floats(0.05, 1), min_size=5, max_size=5))
def test_the_kl_estimate_is_unbiased_and_never_negative(weights, others):
    p = torch.tensor(weights, dtype=torch.float64)
    q = torch.tensor(others[: len(weights)], dtype=torch.float64)
    p, q = p / p.sum(), q / q.sum()
    estimates = kl_estimate(p.log(), q.log())
    assert (estimates >= -1e-12).all()
    assert (p * estimates).sum().item() == pytest.approx((p * (p / q).log()).sum().item(), abs=1e-9)


@given(logprob, logprob, st.floats(0.1, 3))
def test_replayed_tokens_weigh_their_ratio_up_to_the_limit(old, behaviour, limit):
    got = importance_weights(tensor(old), tensor(behaviour), limit).item()
    assert got == pytest.approx(min(limit, math.exp(old - behaviour)), rel=1e-9)
