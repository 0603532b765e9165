"""Group advantages against the equations, evaluated naively in float64."""

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.advantages import EPSILON, group_advantages, spread

reward = st.floats(-2, 2, width=32)
rewards = st.integers(2, 6).flatmap(lambda size: st.lists(st.lists(reward, min_size=size, max_size=size), min_size=1, max_size=5))


@given(rewards)
def test_group_scale_is_the_papers_equation(rows):
    got = group_advantages(torch.tensor(rows, dtype=torch.float64), "group")
    for row, advantages in zip(rows, got.tolist(), strict=True):
        alive = max(row) - min(row) > EPSILON
        mean, deviation = statistics.fmean(row), statistics.stdev(row)
        wanted = [(r - mean) / (deviation + EPSILON) if alive else 0.0 for r in row]
        assert advantages == pytest.approx(wanted, abs=1e-6)


@given(rewards, st.sampled_from(["group", "none"]))
def test_a_member_without_a_verdict_changes_nothing_for_the_others(rows, scale):
    plain = group_advantages(torch.tensor(rows, dtype=torch.float64), scale)
    silent = torch.cat([torch.tensor(rows, dtype=torch.float64), torch.full((len(rows), 1), math.nan)], dim=1)
    got = group_advantages(silent, scale)
    assert torch.allclose(got[:, :-1], plain)
    assert (got[:, -1] == 0).all()


@given(rewards)
def test_advantages_of_a_group_add_up_to_zero(rows):
    got = group_advantages(torch.tensor(rows, dtype=torch.float64), "none")
    assert got.sum(1).abs().max() < 1e-9


def test_batch_scale_divides_by_the_deviation_of_all_rewards():
    rows = torch.tensor([[0.0, 1.0], [0.0, 3.0]], dtype=torch.float64)
    got = group_advantages(rows, "batch")
    deviation = statistics.stdev([0.0, 1.0, 0.0, 3.0])
    assert got.flatten().tolist() == pytest.approx([x / deviation for x in (-0.5, 0.5, -1.5, 1.5)], rel=1e-5)


def test_a_group_without_any_verdict_is_silent_and_finite():
    got = group_advantages(torch.tensor([[math.nan, math.nan], [0.0, 1.0]]), "group")
    assert got[0].tolist() == [0.0, 0.0]
    assert got[1, 1] > 0
    assert spread(torch.tensor([[math.nan, math.nan]])).tolist() == [0.0]


def test_an_unknown_scale_is_refused_by_name():
    with pytest.raises(ValueError, match="'std'.*group, batch, none"):
        group_advantages(torch.zeros(1, 2), "std")
