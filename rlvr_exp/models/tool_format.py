"""Tools in a prompt, and their results after a call: by the chat template if it has tools, else in a form of our own.

Whether a template has tools, and in which form it writes a call, is found out by rendering one.
"""

import json

from transformers import PreTrainedTokenizerBase

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.tools import CALL, CALL_END, Tool

_RESULT, _RESULT_END = "<tool_response>", "</tool_response>"
_SAID, _MARK = "b4c7 said", "a9f3 result"
"""Stand for a turn and a result in a rendered conversation."""


def template_has_tools(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the chat template describes tools.

    Raises:
        InputError: it does, and writes calls in a form that is not read here.
    """
    probe = Tool("probe_b7", "", "text")
    asked = [{"role": "user", "content": "-"}]
    text = tokenizer.apply_chat_template(asked, tools=[probe.schema], tokenize=False)
    if probe.name not in text:
        return False
    call = {"type": "function", "function": {"name": probe.name, "arguments": {"text": "x"}}}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    written = tokenizer.apply_chat_template([*asked, said], tokenize=False)
    inside = written.partition(CALL)[2].partition(CALL_END)[0]
    try:
        if json.loads(inside) == call["function"]:
            return True
    except ValueError:
        pass
    what, allowed = "its chat template writes tool calls in a form that is not read", f"{CALL} with a JSON object"
    remedy = "another model, or model.chat_template=never for the form of environment=tools"
    raise InputError(InputProblem("model", what, written[-200:], allowed, "", remedy))


def around_result(tokenizer: PreTrainedTokenizerBase, with_tools: bool, thinking: bool) -> tuple[str, str]:
    """What stands in a chat between the text of a turn with a call and the result, and between the result and where the policy
    goes on. The first part begins with the end of a turn."""
    said = [{"role": "user", "content": "-"}, {"role": "assistant", "content": _SAID}]
    role, content = ("tool", _MARK) if with_tools else ("user", f"{_RESULT}\n{_MARK}\n{_RESULT_END}")
    whole = tokenizer.apply_chat_template(
        [*said, {"role": role, "content": content}],
        add_generation_prompt=True,
        tokenize=False,
        enable_thinking=thinking,
    )
    before, _, after = whole.partition(_SAID)[2].partition(_MARK)
    return before, after


PLAIN = (f"\n{_RESULT}\n", f"\n{_RESULT_END}\n")
"""The same without a chat."""
