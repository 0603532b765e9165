"""Filters and draws on given logits, compared with Transformers' own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.sampling_params import PART, LogitFilters, draw, filter_mask

ROWS, VOCABULARY = 6, 50
EACH = torch.arange(ROWS)


def test_tokens_of_one_row_are_drawn_from_it():
    numbers = torch.rand(9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = torch.tensor([0, 0, 5, 2, 2, 2, 1, 0, 5])
    for filters in (LogitFilters(0.7), LogitFilters(top_k=7, min_p=0.01)):
        drawn, alone = draw(logits(3), numbers, filters, rows), draw(logits(3)[rows], numbers, filters, torch.arange(9))
        assert torch.equal(drawn.ids, alone.ids) and torch.equal(drawn.logprobs, alone.logprobs)
        assert torch.equal(drawn.entropies, alone.entropies) and drawn.kept_token_ids() == alone.kept_token_ids()


def logits(seed: int, scale: float = 3.0) -> torch.Tensor:
    return torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * scale


def by_transformers(scores: torch.Tensor, filters: LogitFilters) -> torch.Tensor:
    """Scores in generate's order; -inf where a token may not be drawn."""
    warpers = [TemperatureLogitsWarper(filters.temperature)] if filters.temperature != 1.0 else []
    warpers += [TopKLogitsWarper(filters.top_k)] if filters.top_k else []
    warpers += [TopPLogitsWarper(filters.top_p)] if filters.top_p < 1 else []
    warpers += [MinPLogitsWarper(filters.min_p)] if filters.min_p else []
    for warper in warpers:
        scores = warper(None, scores)
    return scores


@given(
    st.integers(0, 999),
    st.builds(
        LogitFilters,
        temperature=st.floats(0.1, 3.0),
        top_k=st.integers(0, 60),
        top_p=st.floats(0.05, 1.0),
        min_p=st.floats(0.0, 1.0),
    ),
    st.integers(0, 999),
)
@settings(max_examples=tries(150), deadline=None)
def test_filters_and_probabilities_are_those_of_transformers(seed, filters, draws):
    numbers = torch.rand(ROWS, generator=torch.Generator().manual_seed(draws), dtype=torch.float64)
    drawn = draw(logits(seed), numbers, filters, EACH)
    wanted = by_transformers(logits(seed), filters)
    assert torch.equal(drawn.kept if filters.narrow else torch.isfinite(wanted), torch.isfinite(wanted))
    own = wanted.log_softmax(-1).gather(-1, drawn.ids[:, None])[:, 0]
    assert torch.allclose(own, drawn.logprobs, atol=1e-5)


@given(st.integers(0, 999), st.sampled_from([0.0, 0.5, 1 - 2**-53]), st.integers(1, 3))
@settings(deadline=None)
def test_what_is_filtered_out_is_never_drawn(seed, number, top_k):
    scores = logits(seed, 30.0)
    drawn = draw(scores, torch.full((ROWS,), number, dtype=torch.float64), LogitFilters(top_k=top_k), EACH)
    assert drawn.kept.gather(-1, drawn.ids[:, None]).all()
    assert [set(row) for row in drawn.kept_token_ids()] == [set(row.nonzero()[:, 0].tolist()) for row in drawn.kept]


def test_ties_with_the_last_of_the_likeliest_stay():
    scores = torch.tensor([[3.0, 2.0, 2.0, 1.0]])
    assert filter_mask(scores, LogitFilters(top_k=2)).tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("filters", [LogitFilters(), LogitFilters(0.2, top_k=3)])
def test_greedy_rows_take_the_likeliest_beside_rows_that_draw(filters):
    scores = logits(1)
    numbers = torch.tensor([float("nan"), 0.1, float("nan"), 0.9, 0.5, 0.3], dtype=torch.float64)
    drawn = draw(scores, numbers, filters, EACH)
    assert drawn.ids[[0, 2]].tolist() == scores.argmax(-1)[[0, 2]].tolist()
    assert drawn.logprobs[[0, 2]].tolist() == [0.0, 0.0]
    assert (drawn.logprobs[[1, 3, 4, 5]] < 0).all()


def test_sixteen_bit_logits_are_drawn_from_in_full_precision():
    scores = logits(2).bfloat16()
    drawn = draw(scores, torch.full((ROWS,), 0.4, dtype=torch.float64), LogitFilters(), EACH)
    wanted = scores.float().log_softmax(-1).gather(-1, drawn.ids[:, None])[:, 0]
    assert torch.allclose(drawn.logprobs, wanted, atol=1e-5)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_stop_the_run_with_a_remedy(broken):
    scores = logits(0)
    scores[2, 7] = broken
    with pytest.raises(GuardStop, match="logits are no numbers.*Lower optimizer.lr"):
        draw(scores, torch.zeros(ROWS, dtype=torch.float64), LogitFilters(), EACH).fetch()


def large(rows: int, seed: int = 0) -> torch.Tensor:
    """Logits of a vocabulary of several parts, the last of them not full."""
    return torch.randn(rows, 5 * PART + 7, generator=torch.Generator().manual_seed(seed)) * 4


def test_draws_from_a_large_vocabulary_invert_its_cumulative_distribution():
    scores, numbers = large(64), torch.rand(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    drawn = draw(scores, numbers, LogitFilters(), torch.arange(64))
    chances = scores.double().softmax(-1)
    above = chances.cumsum(-1).gather(-1, drawn.ids[:, None])[:, 0]
    below = above - chances.gather(-1, drawn.ids[:, None])[:, 0]
    assert (below - 1e-6 <= numbers).all() and (numbers <= above + 1e-6).all()
    logs = scores.double().log_softmax(-1)
    assert torch.allclose(drawn.logprobs.double(), logs.gather(-1, drawn.ids[:, None])[:, 0], atol=1e-5)
    assert torch.allclose(drawn.entropies.double(), -(chances * logs).sum(-1), atol=1e-4)


@pytest.mark.parametrize("number", [0.0, 0.5, 1 - 2**-53])
def test_tokens_of_a_large_vocabulary_without_a_chance_are_never_drawn(number):
    drawn = draw(large(9), torch.full((9,), number, dtype=torch.float64), LogitFilters(top_k=3), torch.arange(9))
    assert drawn.kept.gather(-1, drawn.ids[:, None]).all()


def test_a_draw_from_a_large_vocabulary_has_the_same_bits_alone():
    scores, numbers = large(9), torch.rand(9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    together = draw(scores, numbers, LogitFilters(0.7), torch.arange(9))
    for row in range(9):
        alone = draw(scores[row : row + 1], numbers[row : row + 1], LogitFilters(0.7), torch.tensor([0]))
        for name in ("ids", "logprobs", "entropies"):
            assert torch.equal(getattr(alone, name), getattr(together, name)[row : row + 1])
