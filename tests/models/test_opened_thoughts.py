"""A chat template may open the thoughts of an answer: its reader, and imitation, have to know."""

import re
from typing import Any, cast

import pytest
from own_models import own_tokenizer

from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.completion import whole_program

PROGRAM = "def f(x):\n    return x\n"
TEMPLATE = "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
ENDS = {"nothing": "", "opened": "<think>\n", "opened and closed": "<think>\n\n</think>\n\n", "in a line": "<think>"}


TAGS = {
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}


def policy(end: str, chat: bool = True) -> Policy:
    tokenizer = own_tokenizer([PROGRAM, "<think>\n</think>\n"] * 9, 300, TEMPLATE + end)
    return Policy(cast(Any, None), tokenizer, (tokenizer.eos_token_id,), chat=chat, thinking=False, max_tokens=500)


def sampled(one: Policy, text: str) -> str:
    """The text of a completion of which these tokens were drawn."""
    return one.decode(one.tokenizer(text, add_special_tokens=False).input_ids)


@pytest.mark.parametrize("end", ENDS)
def test_a_completion_that_never_leaves_the_thoughts_of_its_prompt_has_no_answer(end: str) -> None:
    one, inside = policy(ENDS[end]), end in ("opened", "in a line")
    assert (whole_program(sampled(one, PROGRAM)).text is None) == inside
    assert (whole_program(sampled(one, f"```python\n{PROGRAM}```")).text is None) == inside
    assert whole_program(sampled(one, f"Twice?\n</think>\n\n{PROGRAM}")).text == PROGRAM


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("answer", [PROGRAM, f"<think>\nSo.\n</think>\n{PROGRAM}", f"So.\n</think>\n{PROGRAM}"])
def test_what_is_imitated_is_read_as_the_answer(end: str, answer: str) -> None:
    one = policy(ENDS[end])
    learned = one.decode(one.encode_completion(answer))
    assert whole_program(learned).text == PROGRAM and learned.count("</think>") == learned.count("<think>") + (
        answer.startswith("So") and not one.opening
    )


@pytest.mark.parametrize("tag", TAGS)
def test_the_tags_of_other_models_are_known(tag: str) -> None:
    one = policy(f"{tag}\n")
    assert whole_program(sampled(one, PROGRAM)).text is None
    assert whole_program(sampled(one, f"Twice?\n{TAGS[tag]}\n\n{PROGRAM}")).text == PROGRAM
    assert whole_program(one.decode(one.encode_completion(PROGRAM))).text == PROGRAM
    assert policy(f"{tag}\n\n{TAGS[tag]}\n").opening == ""


@pytest.mark.parametrize("tag", TAGS)
def test_tags_that_are_special_tokens_are_kept_and_no_other(tag: str) -> None:
    one, (opening, closing) = policy(""), (tag, TAGS[tag])
    marks = re.findall(r"<\|\w+\|>|<.*?>|\[.*?\]", opening + closing)
    one.tokenizer.add_special_tokens({"additional_special_tokens": [*dict.fromkeys(marks), "<|other|>"]})
    assert sampled(one, f"{opening}So.{closing}<|other|>{PROGRAM}") == f"{opening}So.{closing}{PROGRAM}"
    assert sampled(one, f"<|other|>{PROGRAM}") == PROGRAM


def test_plain_prompts_open_nothing() -> None:
    assert policy("<think>\n", chat=False).decode([]) == "" and policy("<think>\n").decode([]) == "<think>\n"
