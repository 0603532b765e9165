"""`model.tokenizer` and `model.system`: another tokenizer over the same weights, and a message before every prompt."""

from dataclasses import replace
from pathlib import Path

import pytest
from own_models import TEMPLATE, own_model, own_tokenizer
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records.manifest import initial_weights

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


@pytest.mark.parametrize("more", [{}, {"tokenizer": "words", "chat_template": "never"}])
def test_a_plain_prompt_begins_with_its_system_message(plain: Path, words: Path, more: dict) -> None:
    more = more | ({"tokenizer": str(words)} if "tokenizer" in more else {})
    policy = load_policy(Model(path=str(plain), system="Be brief.", **more), 0)
    assert not policy.chat and policy.tokenizer.decode(policy.encode_prompt("x")) == "Be brief.\n\nx"
    assert not policy.prompt_fits("x", len(policy.encode_prompt("x")) - 1)
    assert missing_artifacts(compose(["+stage=evaluate", f"model.path={plain}", "model.system=x"]).config) == []


def test_a_system_message_without_tokens_is_refused(plain: Path, tmp_path: Path) -> None:
    few = Tokenizer(BPE(vocab={"?": 0, "a": 1}, merges=[], unk_token="?"))
    PreTrainedTokenizerFast(tokenizer_object=few, unk_token="?", eos_token="a").save_pretrained(tmp_path)
    model = Model(path=str(plain), tokenizer=str(tmp_path), system="aaa")
    assert load_policy(model, 0).system == "aaa"
    with pytest.raises(InputError, match="no tokens for it"):
        load_policy(replace(model, system="abc"), 0)


def test_a_template_that_refuses_system_messages_is_named(plain: Path, tmp_path: Path) -> None:
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + TEMPLATE
    own_tokenizer(TEXTS, 300, refusing).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no system here"):
        load_policy(Model(path=str(plain), tokenizer=str(tmp_path), system="x"), 0)


def test_a_template_that_leaves_system_messages_out_is_named(plain: Path, tmp_path: Path) -> None:
    silent = "{% for one in messages if one['role'] == 'user' %}<user>{{ one['content'] }}{% endfor %}"
    own_tokenizer(TEXTS, 300, silent).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"leaves it out[\s\S]*chat_template=never"):
        load_policy(Model(path=str(plain), tokenizer=str(tmp_path), system="x"), 0)


def test_a_tokenizer_that_does_not_fit_is_refused_by_its_own_name(plain: Path, tmp_path: Path) -> None:
    own_tokenizer([f"word{number} " * 3 for number in range(300)], 600).save_pretrained(tmp_path / "large")
    for folder in (tmp_path / "large", tmp_path / "gone"):
        (need,) = missing_artifacts(
            compose(["+stage=evaluate", f"model.path={plain}", f"model.tokenizer={folder}"]).config
        )
        assert need.problem.where == "model.tokenizer" and not need.command


def test_a_run_begins_with_the_files_of_its_tokenizer(plain: Path, words: Path) -> None:
    config = compose(["+stage=grpo", f"model.path={plain}", f"model.tokenizer={words}"]).config
    assert {"tokenizer/tokenizer.json", "tokenizer/chat_template.jinja"} <= initial_weights(config).keys()
