"""Advantages of single tokens against the equations, evaluated naively in float64."""

import math
import statistics
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.advantages import explained_variance, gae, token_rewards, whiten

number = st.floats(-3, 3, width=32)
unit = st.floats(0, 1)


@st.composite
def batches(draw):
    """Rewards and values of completions of several lengths, as lists and as right-padded tensors, random off the mask."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    rows = [[(draw(number), draw(number)) for _ in range(n)] for n in lengths]
    width = max(lengths)
    padded = torch.full((2, len(rows), width), draw(number), dtype=torch.float64)
    mask = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        padded[:, i, : len(row)] = torch.tensor(row, dtype=torch.float64).T
        mask[i, : len(row)] = 1
    return rows, padded[0], padded[1], mask


def naive(row: list[tuple[float, float]], gamma: float, lam: float) -> list[float]:
    """Eq. 16 of the paper: A_t is the sum of (gamma lambda)^l delta_t+l; V after the last token is zero."""
    values = [value for _, value in row] + [0.0]
    delta = [reward + gamma * values[t + 1] - values[t] for t, (reward, _) in enumerate(row)]
    return [math.fsum((gamma * lam) ** k * delta[t + k] for k in range(len(row) - t)) for t in range(len(row))]


@pytest.mark.property(13)
@given(batches(), unit, unit)
def test_advantages_are_the_papers_sum_and_returns_add_the_value(batch, gamma, lam):
    rows, rewards, values, mask = batch
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    for i, row in enumerate(rows):
        wanted = naive(row, gamma, lam)
        assert advantages[i, : len(row)].tolist() == pytest.approx(wanted, abs=1e-9)
        back = [a + value for a, (_, value) in zip(wanted, row, strict=True)]
        assert returns[i, : len(row)].tolist() == pytest.approx(back, abs=1e-9)
    assert (advantages[mask == 0] == 0).all() and (returns[mask == 0] == 0).all()


@pytest.mark.property(13)
@given(batches(), unit)
def test_at_lambda_one_returns_are_discounted_rewards_whatever_the_value_says(batch, gamma):
    rows, rewards, values, mask = batch
    _, returns = gae(rewards, values, mask, gamma, 1.0)
    for i, row in enumerate(rows):
        wanted = [math.fsum(gamma**k * row[t + k][0] for k in range(len(row) - t)) for t in range(len(row))]
        assert returns[i, : len(row)].tolist() == pytest.approx(wanted, abs=1e-9)


@given(batches(), number, number)
def test_the_reward_is_on_the_last_token_and_the_penalty_on_all(batch, reward, penalty):
    rows, _, _, mask = batch
    got = token_rewards(torch.full((len(rows),), reward), mask, torch.full_like(mask, penalty))
    for i, row in enumerate(rows):
        wanted = [-penalty] * len(row)
        wanted[-1] += reward
        assert got[i].tolist() == pytest.approx(wanted + [0.0] * (mask.shape[1] - len(row)), abs=1e-6)


@given(batches())
def test_whitened_advantages_have_mean_zero_and_deviation_one_and_keep_their_order(batch):
    _, rewards, _, mask = batch
    got = whiten(rewards, mask)[mask > 0].tolist()
    kept = rewards[mask > 0].tolist()
    assert (whiten(rewards, mask)[mask == 0] == 0).all()
    assert statistics.fmean(got) == pytest.approx(0, abs=1e-6)
    if max(kept) - min(kept) > 1e-3:
        assert statistics.pstdev(got) == pytest.approx(1, abs=1e-4)
    order = sorted(range(len(kept)), key=kept.__getitem__)
    assert all(got[a] <= got[b] + 1e-9 for a, b in pairwise(order))


def test_explained_variance_is_one_for_a_perfect_value_zero_for_a_constant_and_unknown_without_variance():
    returns, mask = torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[1, 1, 0]])
    assert explained_variance(returns, returns, mask) == 1
    assert explained_variance(torch.zeros(1, 3), returns, mask) == 0
    assert explained_variance(-returns, returns, mask) == pytest.approx(-3)
    assert math.isnan(explained_variance(returns, torch.ones(1, 3), mask))
