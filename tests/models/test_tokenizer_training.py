"""Tokenizers that are named_tokenizer from texts (property 44): equal texts give equal ones, any text decodes to itself."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy
from rlvr_exp.models.random_weights import EOS, PAD, build_tokenizer

TEXTS = ["I\n012\n345\nO\n012\nP\ndef solve(grid):\n    return [row[::-1] for row in grid]\n", "return grid é\n" * 3]
KINDS = {
    "characters": Scratch(tokenizer="characters"),
    "bytes": Scratch(tokenizer="bytes"),
    "bpe": Scratch(tokenizer="bpe", vocabulary=300),
    "grid": Scratch(tokenizer="grid", vocabulary=300),
}
ANY = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from([*TEXTS, "<0x0A> <0xE9>", "  a\t\n\r\n "])
)


@pytest.fixture(scope="module", params=KINDS)
def named_tokenizer(request: pytest.FixtureRequest) -> tuple[str, PreTrainedTokenizerBase]:
    return request.param, build_tokenizer(KINDS[request.param], TEXTS)


@pytest.mark.property(44)
@settings(max_examples=tries(200), deadline=None)
@given(text=ANY)
def test_any_text_decodes_to_itself(named_tokenizer, text: str) -> None:
    tokenizer = named_tokenizer[1]
    if not any(name in text for name in (PAD, EOS)):
        assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_equal_texts_make_an_equal_tokenizer_that_loads_as_any_other(named_tokenizer, tmp_path: Path) -> None:
    name, tokenizer = named_tokenizer
    assert build_tokenizer(KINDS[name], TEXTS).backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for text in (*TEXTS, "naïve ∑\n"):
        assert loaded(text).input_ids == tokenizer(text).input_ids and loaded.decode(loaded(text).input_ids) == text


def test_what_a_token_is(named_tokenizer) -> None:
    name, tokenizer = named_tokenizer
    count = lambda text: len(tokenizer(text).input_ids)  # noqa: E731
    if name == "characters":
        assert count(TEXTS[1]) == len(TEXTS[1]) and count("∑") == 3
    elif name == "bytes":
        assert count(TEXTS[1]) == len(TEXTS[1].encode())
    elif name == "grid":
        assert count("012\n345\n") == 6, "each cell is a token, with the end of its row"
    if name in ("bpe", "grid"):
        assert count(TEXTS[1]) < len(TEXTS[1]) and len(tokenizer) <= 300


def test_a_model_has_a_row_for_each_token_and_answers_end_with_the_end_token(named_tokenizer) -> None:
    name, tokenizer = named_tokenizer
    options = Scratch(**{**vars(KINDS[name]), "layers": 1, "hidden": 32, "heads": 2, "head_dim": 16})
    policy = load_policy(Model(from_scratch=True, scratch=options), seed=0, own_tokenizer=tokenizer)
    assert policy.model.get_input_embeddings().num_embeddings == len(tokenizer)
    ids = policy.encode_completion("return grid")
    assert ids[-1] == policy.model.config.eos_token_id == tokenizer.eos_token_id and policy.decode(ids) == "return grid"


def test_a_policy_does_not_fall_back_on_another_tokenizer() -> None:
    with pytest.raises(InputError, match="built from the data"):
        load_policy(Model(from_scratch=True, scratch=KINDS["bytes"]), seed=0)
