"""Frozen weights stay bit for bit, all others move."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import loaded, updated, written
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.models.parameters import parameters

PARTS = {
    "model.layers.0.*": "model.layers.0.",
    "model.layers.1.self_attn.*": "model.layers.1.self_attn.",
    "*norm*": "norm",
    "*.mlp.*": ".mlp.",
    "lm_head.*": "model.embed_tokens.",  # tied: one tensor under two names
}
"""A pattern, and what the names of the parameters that it freezes have in them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("model"))


@pytest.mark.property(8)
@settings(max_examples=tries(12), deadline=None)
@given(patterns=st.sets(st.sampled_from(list(PARTS)), max_size=4))
def test_frozen_layers_stay_and_the_others_move(folder, patterns: set[str]) -> None:
    policy = loaded(folder, freeze=sorted(patterns))
    before = {name: value.detach().clone() for name, value in policy.model.named_parameters()}
    updated(policy)
    for name, value in policy.model.named_parameters():
        frozen = any(PARTS[pattern] in name for pattern in patterns)
        assert torch.equal(value, before[name]) == frozen, name


def test_the_report_counts_what_is_trained(folder) -> None:
    whole, part = (parameters(loaded(folder, freeze=list(freeze)).model) for freeze in ((), ("model.layers.*",)))
    embeddings = 1024 * 64
    assert whole.trained == whole.total == part.total and part.trained == embeddings + 64
    assert part.trained_by_part == {"model.embed_tokens.weight": embeddings, "model.norm.weight": 64}
    assert 0 <= whole.weight_bytes - 4 * whole.total < 100, "float32, tied weights once; the rest is rotary frequencies"
    assert "model.layers.*.mlp.up_proj.weight" in whole.trained_by_part


def test_a_pattern_that_fits_nothing_is_refused_with_the_nearest_name(folder) -> None:
    with pytest.raises(InputError) as refused:
        loaded(folder, freeze=["model.layer.0.*", "model.norm.wieght", "model.layers.*"])
    first, second = refused.value.problems
    assert first.got == "model.layer.0.*" and first.suggestion.startswith("model.layers.0.")
    assert second.suggestion == "model.norm.weight"


def test_freezing_everything_is_refused(folder) -> None:
    with pytest.raises(InputError, match="nothing is left to train"):
        loaded(folder, freeze=["*"])
