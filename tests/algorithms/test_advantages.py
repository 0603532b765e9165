"""Group advantages against the equations, evaluated naively in float64."""

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.advantages import group_advantages, leave_one_out, over_mean, spread, weighted

EPS = 1e-6
reward = st.floats(-2, 2, width=32)
rewards = st.integers(2, 6).flatmap(
    lambda size: st.lists(st.lists(reward, min_size=size, max_size=size), min_size=1, max_size=5)
)
METHODS = {
    "none": lambda values: group_advantages(values, "none"),
    "group": lambda values: group_advantages(values, "group"),
    "leave_one_out": leave_one_out,
}


def doubles(rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@given(rewards)
def test_group_scale_is_deepseekmath_section_4_1_2(rows):
    got = group_advantages(doubles(rows), "group")
    for row, advantages in zip(rows, got.tolist(), strict=True):
        alive = max(row) - min(row) > EPS
        mean, deviation = statistics.fmean(row), statistics.stdev(row)
        wanted = [(r - mean) / (deviation + EPS) if alive else 0.0 for r in row]
        assert advantages == pytest.approx(wanted, abs=1e-6)


@given(rewards)
def test_leave_one_out_is_rloos_baseline(rows):
    got = leave_one_out(doubles(rows))
    for row, advantages in zip(rows, got.tolist(), strict=True):
        alive = max(row) - min(row) > EPS
        others = [statistics.fmean(row[:i] + row[i + 1 :]) for i in range(len(row))]
        assert advantages == pytest.approx(
            [r - o if alive else 0.0 for r, o in zip(row, others, strict=True)], abs=1e-9
        )


@given(rewards)
def test_leave_one_out_is_the_group_mean_baseline_times_g_over_g_minus_one(rows):
    size = len(rows[0])
    scaled = group_advantages(doubles(rows), "none") * size / (size - 1)
    assert torch.allclose(leave_one_out(doubles(rows)), scaled, atol=1e-9)


@given(st.lists(st.lists(st.floats(0, 2, width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_over_mean_is_maxrls_algorithm_1(rows):
    silent = torch.cat([doubles(rows), torch.full((len(rows), 1), math.nan)], dim=1)
    for row, advantages in zip(rows, over_mean(silent).tolist(), strict=True):
        mean, alive = statistics.fmean(row), max(row) - min(row) > EPS
        assert advantages == pytest.approx([(r - mean) / mean if alive else 0.0 for r in row] + [0.0], rel=1e-9)


@pytest.mark.parametrize(("row", "wanted"), [([1.0, 0, 0, 0], [3.0, -1, -1, -1]), ([0.0] * 4, [0.0] * 4)])
def test_a_single_success_has_the_highest_advantage_and_none_has_no_advantage(row, wanted):
    assert over_mean(doubles([row])).tolist() == [wanted]


@given(rewards, st.sampled_from(sorted(METHODS)))
def test_a_member_without_a_verdict_changes_nothing_for_the_others(rows, method):
    plain = METHODS[method](doubles(rows))
    silent = torch.cat([doubles(rows), torch.full((len(rows), 1), math.nan)], dim=1)
    got = METHODS[method](silent)
    assert torch.allclose(got[:, :-1], plain)
    assert (got[:, -1] == 0).all()


@given(rewards, st.sampled_from(sorted(METHODS)), st.floats(-4, 4, width=16))
def test_the_level_of_a_groups_rewards_does_not_matter(rows, method, shift):
    got, moved = METHODS[method](doubles(rows)), METHODS[method](doubles(rows) + shift)
    clear = (spread(doubles(rows)) - EPS).abs() > 1e-9  # on the border between dead and alive, rounding decides
    assert torch.allclose(got[clear], moved[clear], atol=1e-6)


@given(rewards, st.sampled_from(sorted(METHODS)))
def test_advantages_of_a_group_add_up_to_zero(rows, method):
    assert METHODS[method](doubles(rows)).sum(1).abs().max() < 1e-5


@given(rewards, st.sampled_from(sorted(METHODS)))
def test_a_higher_reward_has_a_higher_advantage(rows, method):
    for row, advantages in zip(rows, METHODS[method](doubles(rows)).tolist(), strict=True):
        ranked = [advantages[place] for place in sorted(range(len(row)), key=row.__getitem__)]
        assert ranked == sorted(ranked)


def test_batch_scale_divides_by_the_deviation_of_all_rewards():
    rows = doubles([[0.0, 1.0], [0.0, 3.0]])
    got = group_advantages(rows, "batch")
    deviation = statistics.stdev([0.0, 1.0, 0.0, 3.0])
    assert got.flatten().tolist() == pytest.approx([x / deviation for x in (-0.5, 0.5, -1.5, 1.5)], rel=1e-5)


def test_a_group_without_any_verdict_is_silent_and_finite():
    for method in METHODS.values():
        got = method(torch.tensor([[math.nan, math.nan], [0.0, 1.0]]))
        assert got[0].tolist() == [0.0, 0.0]
        assert got[1, 1] > 0
    assert spread(torch.tensor([[math.nan, math.nan]])).tolist() == [0.0]


def test_the_only_verified_member_has_no_baseline():
    assert leave_one_out(torch.tensor([[1.0, math.nan]])).tolist() == [[0.0, 0.0]]


def test_rewards_within_eps_of_each_other_give_no_advantage():
    rows = doubles([[0.5, 0.5 + 1e-3]])
    assert group_advantages(rows, "group", eps=1e-2).abs().max() == 0
    assert group_advantages(rows, "group", eps=1e-4).abs().max() > 0.5


@given(rewards, st.floats(0, 4, width=16))
def test_weighted_advantages_are_w_reinforces(rows, factor):
    """Zhu et al. 2025: the objective of right answers times a factor, and that of wrong ones as it is."""
    plain = group_advantages(doubles(rows), "none")
    right, wrong = plain.clamp(min=0.0), plain.clamp(max=0.0)
    assert torch.equal(weighted(plain, factor), factor * right + wrong)


def test_an_unknown_scale_is_refused_by_name():
    with pytest.raises(ValueError, match="'std'.*group, batch, none"):
        group_advantages(torch.zeros(1, 2), "std")
