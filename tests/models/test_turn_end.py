"""The token that ends an answer: in chat the template's own end of a turn, else the tokenizer's eos, never twice in a prompt."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_models import own_model, own_tokenizer
from tokenizers.processors import TemplateProcessing

from rlvr_exp.algorithms.sft import IGNORED, example
from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import InputError
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.stages.shared.components import load_policies

TURN = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}END{% endfor %}"
TEMPLATES = {
    "chatml": (TURN.replace("END", "<|im_end|>\n"), "<|im_end|>"),
    "phi: eos after the last turn": (
        TURN.replace("END", "<|im_end|>\n")
        + "{% if add_generation_prompt %}<|im_start|>assistant\n{% else %}{{ eos_token }}{% endif %}",
        "<|im_end|>",
    ),
    "llama 2: a blank before the end": (TURN.replace("END", " <|endoftext|>"), "<|endoftext|>"),
    "deepseek coder: a line end before the end": (TURN.replace("END", "\n<|im_end|>\n"), "<|im_end|>"),
    "trimmed content": (TURN.replace("END", "<|im_end|>").replace("['content']", "['content'] | trim"), "<|im_end|>"),
    "plain words": (TURN.replace("END", "\n### Instruction:\n"), "<|endoftext|>"),
    "no content": ("{% for m in messages %}<|im_start|>{{ m['role'] }}<|im_end|>{% endfor %}", "<|endoftext|>"),
}


def tokenizer(template: str | None, eos: str = "<|endoftext|>") -> Any:
    made = own_tokenizer(["def double(x):\n    return 2 * x\n"], template=template)
    made.eos_token = eos
    return made


@pytest.mark.parametrize("name", TEMPLATES)
def test_imitation_ends_a_turn_as_the_template_does(tmp_path: Path, name: str) -> None:
    template, end = TEMPLATES[name]
    policy = load_policy(Model(path=str(own_model(tmp_path, "llama", tokenizer(template)))), seed=0)
    learned = [token for token in example(policy, "Double it.", "2 * x")["labels"] if token != IGNORED]
    assert policy.tokenizer.decode(learned) == f"2 * x{end}"
    assert policy.eos_ids[0] == policy.tokenizer.convert_tokens_to_ids(end)
    assert policy.tokenizer.eos_token_id in policy.eos_ids
    assert policy.decode([*learned, *learned]) == "2 * x"
    assert bool([*policy.notes]) == (end != "<|endoftext|>")
    assert policy.model.generation_config.eos_token_id == list(policy.eos_ids)


def test_plain_text_ends_with_the_tokenizers_eos(tmp_path: Path) -> None:
    folder = str(own_model(tmp_path, "llama", tokenizer(TEMPLATES["chatml"][0])))
    policy = load_policy(Model(path=folder, chat_template="never"), seed=0)
    assert policy.tokenizer.decode(policy.encode_completion("x")) == "x<|endoftext|>"


@pytest.mark.parametrize("begin", [False, True])
def test_an_eos_that_the_tokenizer_appends_is_not_part_of_a_prompt(tmp_path: Path, begin: bool) -> None:
    made = tokenizer(None)
    ids = [(name, made.convert_tokens_to_ids(name)) for name in ("<|endoftext|>", "<|im_start|>")]
    single = "<|im_start|> $A <|endoftext|>" if begin else "$A <|endoftext|>"
    made.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=ids)
    policy = load_policy(Model(path=str(own_model(tmp_path, "llama", made))), seed=0)
    assert policy.tokenizer("x").input_ids[-1] == policy.tokenizer.eos_token_id
    for text in ("x = 1", ""):
        assert policy.tokenizer.decode(policy.encode_prompt(text)) == "<|im_start|>" * begin + text
    [note] = policy.notes
    assert "appends <|endoftext|>" in note


def test_a_run_shows_these_notes(tmp_path: Path) -> None:
    folder, shown = own_model(tmp_path, "llama", tokenizer(TEMPLATES["chatml"][0])), []
    context = SimpleNamespace(progress=lambda **event: shown.append(event))
    load_policies(compose(["+stage=evaluate", f"model.path={folder}"]).config, LocalEngine(), None, context)
    [event] = shown
    assert event["kind"] == "note" and event["text"].startswith("answers end with <|im_end|>")


def test_a_begin_token_that_equals_eos_stays(tmp_path: Path) -> None:
    made = tokenizer(None)
    end = ("<|endoftext|>", made.convert_tokens_to_ids("<|endoftext|>"))
    made.backend_tokenizer.post_processor = TemplateProcessing(single="<|endoftext|> $A", special_tokens=[end])
    policy = load_policy(Model(path=str(own_model(tmp_path, "llama", made))), seed=0)
    assert policy.encode_prompt("")[0] == policy.tokenizer.eos_token_id
    assert not [*policy.notes]


def test_a_template_that_fails_is_bad_input(tmp_path: Path) -> None:
    folder = own_model(tmp_path, "llama", tokenizer("{{ raise_exception('no such role') }}"))
    with pytest.raises(InputError, match="chat template fails"):
        load_policy(Model(path=str(folder)), seed=0)
