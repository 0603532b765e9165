"""Imitation learns the form of an answer that the prompt requests, after the system message, and the token that ends it."""

from typing import Any, cast

import pytest
from own_models import own_tokenizer

from rlvr_exp.algorithms.sft import IGNORED
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.models.policy import Policy


@pytest.mark.parametrize(("style", "opens"), [("bare", "def solve("), ("instruct", "```python\ndef solve(")])
def test_what_is_imitated_has_the_form_that_the_prompt_requests(style: str, opens: str) -> None:
    words = ["+stage=sft", f"data.prompt.style={style}", "data.limit=5", "algorithm.max_sequence_tokens=5000"]
    config = compose(words).config
    tokenizer = own_tokenizer(["def solve(grid):\n    return grid\n"] * 9, 300)
    ends = (tokenizer.eos_token_id,)
    policy = Policy(cast(Any, None), tokenizer, ends, chat=True, thinking=False, max_tokens=5000, system="Be brief.")
    domain = build(config.data)
    rows = build(config.algorithm).examples(policy, domain, domain.splits()["train"])
    for row, task in zip(rows, domain.splits()["train"], strict=True):
        learned = [token for token in row["labels"] if token != IGNORED]
        assert learned[-1] == ends[0] and tokenizer.decode(learned[:-1]) == domain.gold_completion(task)
        assert tokenizer.decode(learned).startswith(opens)
        assert tokenizer.decode(row["input_ids"]).startswith(
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n"
        )
