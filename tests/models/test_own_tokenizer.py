"""`model.tokenizer` and `model.system`: another tokenizer over the same weights, and a message before every prompt."""

from pathlib import Path

import pytest
from own_models import TEMPLATE, own_model, own_tokenizer

from rlvr_exp.config import compose
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records.initial_weights import initial_weights

TEXTS = ["def solve(grid):\n    return grid\n"] * 20


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A Llama whose tokenizer has no chat template."""
    return own_model(tmp_path_factory.mktemp("plain"), "llama", own_tokenizer(TEXTS, 300, template=None))


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    own_tokenizer(TEXTS, 300).save_pretrained(folder)
    return folder


def test_another_tokenizer_words_the_prompts(plain: Path, words: Path) -> None:
    own, other = load_policy(Model(path=str(plain)), 0), load_policy(Model(path=str(plain), tokenizer=str(words)), 0)
    assert not own.chat and other.chat
    assert other.tokenizer.decode(other.encode_prompt("x")) == "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"


def test_a_system_message_stands_before_every_prompt(plain: Path, words: Path) -> None:
    policy = load_policy(Model(path=str(plain), tokenizer=str(words), system="Be brief."), 0)
    assert policy.tokenizer.decode(policy.encode_prompt("x")).startswith(
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nx"
    )


def test_a_system_message_that_reaches_no_prompt_is_refused_before_the_start(plain: Path, words: Path) -> None:
    (need,) = missing_artifacts(compose(["+stage=evaluate", f"model.path={plain}", "model.system=x"]).config)
    assert need.problem.where == "model.system" and need.unusable
    told = ["+stage=evaluate", f"model.path={plain}", f"model.tokenizer={words}", "model.system=x"]
    assert missing_artifacts(compose(told).config) == []
    with pytest.raises(InputError, match="model.system"):
        compose([*told, "model.chat_template=never"])
    with pytest.raises(InputError, match="model.system"):
        load_policy(Model(path=str(plain), system="x"), 0)


def test_a_template_that_refuses_system_messages_is_named(plain: Path, tmp_path: Path) -> None:
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + TEMPLATE
    own_tokenizer(TEXTS, 300, refusing).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no system here"):
        load_policy(Model(path=str(plain), tokenizer=str(tmp_path), system="x"), 0)


def test_a_tokenizer_that_does_not_fit_is_refused_by_its_own_name(plain: Path, tmp_path: Path) -> None:
    own_tokenizer([f"word{number} " * 3 for number in range(300)], 600).save_pretrained(tmp_path / "large")
    for folder in (tmp_path / "large", tmp_path / "gone"):
        (need,) = missing_artifacts(
            compose(["+stage=evaluate", f"model.path={plain}", f"model.tokenizer={folder}"]).config
        )
        assert need.problem.where == "model.tokenizer" and need.unusable


def test_a_run_begins_with_the_files_of_its_tokenizer(plain: Path, words: Path) -> None:
    config = compose(["+stage=grpo", f"model.path={plain}", f"model.tokenizer={words}"]).config
    assert {"tokenizer/tokenizer.json", "tokenizer/chat_template.jinja"} <= initial_weights(config).keys()
