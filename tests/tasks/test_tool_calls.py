"""Calls of tools are read from the end of a turn, in the form of chat templates and in our own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.tools import Tool, described, read_call

PYTHON = Tool("python", "Run a program.", "code")
CODE = st.text().filter(lambda text: "tool_call>" not in text)


@given(CODE, CODE)
def test_a_call_in_the_form_of_templates_is_read_exactly(words, code):
    body = json.dumps({"name": "python", "arguments": {"code": code}})
    call = read_call(f"{words}<tool_call>\n{body}\n</tool_call>\n", [PYTHON])
    assert (call.name, call.argument, call.fault) == ("python", code, "")


@given(st.lists(st.sampled_from(["x = 1", "    return 2", "", "print(x)"]), min_size=1))
def test_a_call_in_our_own_form_is_read_by_lines(lines):
    code = "\n".join(lines).strip("\n")
    call = read_call(f"I try.\n<tool_call>\npython\n{code}\n</tool_call>", [PYTHON])
    assert (call.name, call.argument, call.fault) == ("python", code, "")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("rm\nx", "no tool 'rm'; there are: python"),
        ('{"name": "rm", "arguments": {}}', "no tool 'rm'"),
        ('{"name": "python"', "no JSON object"),
        ('{"name": "python", "arguments": {"code": 5}}', "no JSON object"),
        ('{"name": "python", "arguments": [1]}', "no JSON object"),
        ("{" * 100_000, "no JSON object"),
    ],
)
def test_a_call_that_cannot_be_carried_out_says_why(body, fault):
    call = read_call(f"<tool_call>\n{body}\n</tool_call>", [PYTHON])
    assert call.fault.startswith("error: ") and fault in call.fault


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x",
        "<tool_call>\npython\nprint(1)\n</tool_call>\nand more",
        "<tool_call>\npython\nprint(1)",
    ],
)
def test_other_turns_are_answers(text):
    assert read_call(text, [PYTHON]) is None


def test_the_last_call_counts():
    calls = [f"<tool_call>\npython\nprint({k})\n</tool_call>\n" for k in range(2)]
    assert read_call("".join(calls), [PYTHON]).argument == "print(1)"


def test_a_prompt_tells_the_tools_before_the_task():
    told = described([PYTHON], "Do it.")
    assert told.endswith("\n\nDo it.") and "python: Run a program." in told
