"""The prompt of a Python program to write, to edit or to repair."""

from dataclasses import dataclass

ANSWER = "Answer with the whole program, imports and helpers included, in one code block."


@dataclass(frozen=True)
class CodeInputs:
    """What a prompt is worded from."""

    instruction: str
    before: str = ""
    """The program to edit or to repair; empty where the task is to write a new program."""
    given: str = ""
    """A signature, a header or an example that the program has to fit."""


def write(inputs: CodeInputs) -> str:
    """The prompt of a task."""
    return f"{statement(inputs)}\n\n{ANSWER}\n"


def statement(inputs: CodeInputs) -> str:
    """What is wanted, without a word on the form of the answer."""
    parts = [inputs.instruction.strip()]
    if inputs.before:
        parts.append(f"```python\n{inputs.before.strip(chr(10))}\n```")
    if inputs.given:
        lead = "It has to satisfy" if inputs.given.lstrip().startswith("assert") else ""
        shown = f"```python\n{inputs.given.strip(chr(10))}\n```"
        parts.append(f"{lead}\n{shown}" if lead else shown)
    return "\n\n".join(parts)
