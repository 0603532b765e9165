"""Where parameters of several families are."""

import pytest

from rlvr_exp.algorithms.gradients import place_of


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("base_model.model.model.layers.31.self_attn.q_proj.lora_A.default.weight", "layer_031"),
        ("gpt_neox.layers.0.attention.query_key_value.weight", "layer_000"),
        ("transformer.h.7.mlp.c_fc.weight", "layer_007"),
        ("gpt_neox.embed_in.weight", "embeddings"),
        ("transformer.wte.weight", "embeddings"),
        ("embed_out.weight", "head"),
        ("model.norm.weight", "other"),
    ],
)
def test_places_of_the_families(name: str, place: str) -> None:
    assert place_of(name) == place
