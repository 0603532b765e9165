"""The embedded models: each loads by its name with a tokenizer that restores any text; how each splits text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from transformers import AutoTokenizer

from rlvr_exp.config.model import EMBEDDED_MODELS, Model
from rlvr_exp.models.policy import load_policy

TOKENIZERS = {name: AutoTokenizer.from_pretrained(EMBEDDED_MODELS / name) for name in ("tiny", "tiny_dafny")}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_model_is_loaded_by_its_name(name):
    policy = load_policy(Model(embedded=name, dtype="float32"), seed=0)
    assert policy.model.num_parameters() < 1_200_000
    assert policy.tokenizer.get_vocab() == TOKENIZERS[name].get_vocab()


def test_the_two_are_different_models():
    assert TOKENIZERS["tiny"].get_vocab() != TOKENIZERS["tiny_dafny"].get_vocab()


@settings(max_examples=tries(50), deadline=None)
@given(st.text(max_size=60))
def test_any_text_comes_back(text):
    for tokenizer in TOKENIZERS.values():
        assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_a_name_is_one_token_wherever_it_stands():
    tokenizer = TOKENIZERS["tiny_dafny"]
    pieces = [
        tokenizer.decode([one]) for one in tokenizer("  while i < xs.Length\n    invariant i <= xs.Length").input_ids
    ]
    assert pieces.count(" xs") == 2 and pieces.count(" i") == 2 and pieces.count("Length") == 2


def test_a_cell_is_one_token():
    tokenizer = TOKENIZERS["tiny"]
    assert len(tokenizer("120\n304\n").input_ids) == 6
