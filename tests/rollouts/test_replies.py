"""A body is an answer or nonsense, and nothing else happens to whoever reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.rollouts.engines.client import Nonsense, reply_of

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "finish_reason": st.sampled_from(["stop", "length"]) | ANY,
        "text": st.text() | ANY,
        "message": st.fixed_dictionaries({"content": st.text() | ANY}) | ANY,
        "logprobs": st.fixed_dictionaries({"content": ANY, "token_logprobs": st.lists(ANY)}) | ANY,
        "stop_reason": ANY,
    },
)
BODIES = st.fixed_dictionaries({"choices": st.lists(PARTS | ANY, max_size=3) | ANY, "usage": ANY}).map(json.dumps)


@given(content=st.binary() | st.text().map(str.encode) | ANY.map(json.dumps).map(str.encode) | BODIES.map(str.encode))
def test_any_body_is_an_answer_or_nonsense(content):
    for chat in (True, False):
        try:
            found = reply_of(content, chat)
        except Nonsense as fault:
            assert str(fault)
            continue
        assert found.choices and all(isinstance(one.text, str) for one in found.choices)
        assert all(one.text.encode() is not None for one in found.choices)
        assert found.completion_tokens is None or found.completion_tokens >= 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ('{"error": "busy"}', 'no choices: {"error": "busy"}'),
        ('{"choices": [{"text": "a"}]}', "a choice without its end"),
        ('{"choices": [{"finish_reason": "stop"}]}', "a choice without text"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_nonsense_is_quoted(body, told):
    with pytest.raises(Nonsense) as fault:
        reply_of(body.encode(), chat=False)
    assert told in str(fault.value) and len(str(fault.value)) < 400


def test_lone_surrogates_become_question_marks():
    content = b'{"choices": [{"text": "a\\ud800b", "finish_reason": "stop"}]}'
    assert reply_of(content, chat=False).choices[0].text == "a?b"
