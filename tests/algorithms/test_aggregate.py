"""Loss weights: the papers' averages, unchanged by any split of a step."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.loss import MODES, token_weights

LIMIT, SIZE = 100, 2
lengths = st.lists(st.integers(0, 7), min_size=SIZE, max_size=8).filter(any).map(lambda n: n[: len(n) // SIZE * SIZE])
lengths = lengths.filter(any)


def groups_of(samples: int) -> torch.Tensor:
    """(samples,) groups of SIZE neighbours; the last may be smaller."""
    return torch.arange(samples) // SIZE


def mask_of(lengths: list[int]) -> torch.Tensor:
    return (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()


@given(lengths, st.randoms(use_true_random=False))
def test_weighted_sums_are_the_papers_averages(lengths, random):
    losses = torch.tensor([[random.uniform(-1, 1) for _ in range(max(lengths))] for _ in lengths], dtype=torch.float64)
    rows = [losses[i, :n].tolist() for i, n in enumerate(lengths)]
    live = [row for row in rows if row]
    tokens = [loss for row in live for loss in row]
    prompts = [[loss for row in rows[i : i + SIZE] for loss in row] for i in range(0, len(rows), SIZE)]
    means = [sum(row) / len(row) for row in prompts if row]
    naive = {
        "grpo": sum(sum(row) / len(row) for row in live) / len(live),
        "dapo": sum(means) / len(means),
        "dr_grpo": sum(tokens) / (len(live) * LIMIT),
        "token": sum(tokens) / len(tokens),
        "sequence": sum(tokens) / len(live),
    }
    assert set(naive) == set(MODES)
    for mode in MODES:
        got = (token_weights(mask_of(lengths), mode, LIMIT, groups_of(len(lengths))).double() * losses).sum().item()
        assert got == pytest.approx(naive[mode], abs=1e-5)


@given(lengths, st.sampled_from(MODES))
def test_tokens_off_the_mask_weigh_nothing(lengths, mode):
    mask = mask_of(lengths)
    assert (token_weights(mask, mode, LIMIT, groups_of(len(mask)))[mask == 0] == 0).all()


def test_a_step_without_live_tokens_has_finite_weights():
    for mode in MODES:
        assert token_weights(torch.zeros(2, 3), mode, LIMIT, groups_of(2)).eq(0).all()


def test_an_unknown_mode_is_refused_by_name():
    with pytest.raises(ValueError, match="'mean'.*grpo, dapo, dr_grpo, token, sequence"):
        token_weights(torch.ones(1, 1), "mean", 1)


def test_an_average_over_prompts_needs_the_size_of_a_group():
    with pytest.raises(ValueError, match="the group of each sample"):
        token_weights(torch.ones(2, 1), "dapo", 1)
