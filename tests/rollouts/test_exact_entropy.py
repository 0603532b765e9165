"""The entropy of a sample is exact over the vocabulary, under the filters that it was drawn by."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import EOS, keys, plain_logits, prompts, tiny_model

from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams, draw
from rlvr_exp.training.step_log import _entropy

FILTERS = st.builds(LogitFilters, temperature=st.floats(0.3, 3.0), top_k=st.integers(0, 8), top_p=st.floats(0.3, 1.0))


@given(st.integers(0, 999), FILTERS, st.floats(0.1, 40.0))
@settings(deadline=None)
def test_a_draw_has_the_entropy_of_its_distribution(seed: int, filters: LogitFilters, scale: float) -> None:
    logits = scale * torch.randn(5, 40, generator=torch.Generator().manual_seed(seed))
    found = draw(logits, torch.full((5,), 0.5, dtype=torch.float64), filters, torch.arange(5))
    scores = logits / filters.temperature
    scores = scores if found.kept is None else scores.masked_fill(~found.kept, -math.inf)
    wanted = torch.special.entr(scores.double().softmax(-1)).sum(-1)
    assert torch.allclose(found.entropies.double(), wanted, atol=1e-4) and bool((found.entropies > -1e-5).all())


@pytest.mark.property(41)
@pytest.mark.parametrize("filters", [LogitFilters(), LogitFilters(temperature=0.7, top_k=5)])
def test_a_sample_has_the_mean_over_its_tokens(filters: LogitFilters) -> None:
    model, asked = tiny_model(), prompts(3)
    groups = sample_groups(model, asked, keys(3, 4), SamplingParams(filters, 12, (EOS,)))
    for prompt, drawn in zip(asked, groups, strict=True):
        for one in drawn:
            scores = plain_logits(model, prompt, one.ids) / filters.temperature
            for row, kept in zip(scores, one.kept_token_ids or (), strict=False):
                row[[token for token in range(len(row)) if token not in kept]] = -math.inf
            wanted = torch.special.entr(scores.softmax(-1)).sum(-1).mean()
            assert one.entropy == pytest.approx(float(wanted), abs=1e-4)


@pytest.mark.property(41)
def test_an_estimate_has_a_name_of_its_own() -> None:
    exact = [TokenSample((1, 2), (-1.0, -3.0), False, entropy=0.5), TokenSample((1,), (-9.0,), False, entropy=2.0)]
    assert _entropy(exact) == {"entropy": pytest.approx((2 * 0.5 + 2.0) / 3)}
    assert _entropy([exact[0], TokenSample((1,), (-9.0,), False)]) == {"entropy/estimate": pytest.approx(13 / 3)}
