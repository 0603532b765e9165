"""Prompts of Python programs to write, edit or repair, and the common part of formats whose candidates are Python programs: parsing,
the syntax check, the layout by ruff.
"""

import ast
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import syntax_fault, whole_program
from rlvr_exp.tasks.formats.base import Format

# Without the settings of whatever folder the run is started in.
RUFF = (sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--stdin-filename=answer.py", "-")
LONGEST_S = 60.0


class PythonFormat(Format):
    candidate_key, answer = "code", "program"
    is_python = True

    def parse(self, completion: str, problem: Any = None) -> Candidate:
        return whole_program(completion, getattr(problem, "entry_point", ""))

    def fault(self, problem: Any, text: str) -> str:
        found = syntax_fault(text)
        return "" if found is None else f"line {found[0]}: {found[1]}"

    def layout(self, problem: Any, text: str) -> str | None:
        return layout(text)


@lru_cache(maxsize=256)
def layout(text: str) -> str | None:
    """A valid module as ruff lays it out, docstrings to the letter; None where ruff does not take it, or changes more
    than the layout. ruff reads a program and never runs it; it is an option of the installation (`pip install
    'rlvr_exp[format]'`)."""
    try:
        done = subprocess.run(RUFF, input=text.encode(), capture_output=True, timeout=LONGEST_S, check=False)
        written = done.stdout.decode()
        return written if not done.returncode and _tree(written) == _tree(text) else None
    except (UnicodeError, subprocess.TimeoutExpired, RecursionError, SyntaxError):
        return None  # Lone surrogates, or a nesting that is too deep to compare.


def _tree(text: str) -> str:
    """Without places and layout."""
    return ast.dump(ast.parse(text))


ANSWER = "Answer with the whole program, imports and helpers included, in one code block."


@dataclass(frozen=True)
class CodeInputs:
    """What a prompt is worded from."""

    instruction: str
    before: str = ""
    """The program to edit or to repair; empty where the task is to write a new program."""
    given: str = ""
    """A signature, a header or an example that the program has to fit."""


def program_prompt(inputs: CodeInputs) -> str:
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
