"""Tools that a policy may call, and the form of a call.

A call is the last thing that a turn says:

    <tool_call>                                             <tool_call>
    {"name": "python", "arguments": {"code": "..."}}        python
    </tool_call>                                            print(6 * 7)
                                                            </tool_call>

The form on the left is that of chat templates with tools (Hermes, Qwen, SmolLM3), which describe the tools themselves. The form
on the right is our own for all other models: the name, then the argument as it is. Both are read from every model.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CALL, CALL_END = "<tool_call>", "</tool_call>"
_LAST_CALL = re.compile(rf"{re.escape(CALL)}((?:(?!{re.escape(CALL)}).)*){re.escape(CALL_END)}\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Tool:
    """A function of one text."""

    name: str
    description: str
    argument: str
    """The name of its argument."""

    def call(self, argument: str) -> str:
        """A call in our own form."""
        return f"{CALL}\n{self.name}\n{argument}\n{CALL_END}"

    @property
    def schema(self) -> dict[str, Any]:
        """As chat templates take it: the JSON schema of a function."""
        parameters = {
            "type": "object",
            "properties": {self.argument: {"type": "string"}},
            "required": [self.argument],
        }
        about = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": about}


PYTHON = Tool("python", "Run a Python program. The result is what it prints.", "code")
RUN_TESTS = Tool("run_tests", "Run a solution on the examples of the task. The result says which pass.", "program")
TOOLS = {one.name: one for one in (PYTHON, RUN_TESTS)}


def described(tools: Sequence[Tool], text: str) -> str:
    """A prompt with the tools in words, for models whose chat template has none."""
    lines = "\n".join(f"{one.name}: {one.description}" for one in tools)
    form = f"{CALL}\nNAME\nARGUMENT\n{CALL_END}"
    return f"Tools:\n{lines}\nTo call one, end with\n{form}\nand read its result.\n\n{text}"


@dataclass(frozen=True)
class Call:
    """A call as it was read. `fault`: why it cannot be carried out; empty if it can."""

    name: str
    argument: str
    fault: str = ""


def read_call(text: str, tools: Sequence[Tool]) -> Call | None:
    """The call at the end of a text without thoughts; None if it has none."""
    match = _LAST_CALL.search(text)
    if match is None:
        return None
    body, known = match[1].strip("\n"), {one.name: one for one in tools}
    name, argument = _of_template(body, known) if body.lstrip().startswith("{") else _of_lines(body)
    if argument is None:
        return Call(name, "", "error: the call is no JSON object with name and arguments")
    if name not in known:
        return Call(name, argument, f"error: no tool {name!r}; there are: {', '.join(known)}")
    return Call(name, argument)


def _of_template(body: str, known: Mapping[str, Tool]) -> tuple[str, str | None]:
    try:
        given = json.loads(body)
        name, arguments = given["name"], given["arguments"]
        argument = arguments[known[name].argument] if name in known else ""
        return str(name), argument if isinstance(argument, str) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", None


def _of_lines(body: str) -> tuple[str, str]:
    name, _, argument = body.partition("\n")
    return name.strip(), argument
