"""Formats: everything that is special about one kind of problem except its verifier, and the part that all Python formats share
(prompts, parsing, the syntax check, the layout by ruff)."""

import ast
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import answer_text, whole_program, without_thoughts
from rlvr_exp.tasks.formats.fields import Fields, text_of
from rlvr_exp.tasks.python_syntax import syntax_fault


class Format(ABC):
    """A kind of problem as rows of files hold it, named like the verifier that judges it."""

    name: str
    problem: type
    """The class of its problems."""
    keys: tuple[str, ...]
    """Keys that identify a row of this format."""
    candidate_key: str
    """The key of a row's candidate: a row to solve has none, or its candidate is ignored."""
    answer: str
    """The name of an answer, in a word."""
    languages: tuple[str, ...] = ()
    """Languages of a fenced block that is an answer."""
    fixed_answers = ""
    """Import path of a function of a problem and a kind (plain or all). It yields names and texts of answers that
    ignore their task. Empty if there are none."""
    is_python = False
    """Candidates are Python programs."""

    @abstractmethod
    def read_problem(self, fields: Fields) -> Any:
        """The problem of a row. Raises Fault."""

    def read_candidate(self, fields: Fields) -> Candidate:
        """The candidate of a row; null stands for a completion without one: judged as a failure to parse. Raises
        Fault."""
        key = self.candidate_key
        if key in fields and fields[key] is None:
            return Candidate(None, f"{key} is null: no candidate in the answer")
        return Candidate(text_of(fields, key))

    @abstractmethod
    def prompt(self, problem: Any) -> str:
        """A prompt written from the problem alone. It shows the data that verify the row: a few cases, the tests, the
        text after the edit."""

    def parse(self, completion: str, problem: Any = None) -> Candidate:
        """The candidate in a completion: the last fenced block of the answer's language, else the last block, else the full text,
        since code other than Python cannot be told from chatter.

        Args:
            problem: None if it is not known.
        """
        found = answer_text(without_thoughts(completion), self.languages).strip("\n")
        return Candidate(found + "\n") if found.strip() else Candidate(None, f"no {self.answer} in the answer")

    def as_program(self, problem: Any) -> tuple[Any, str] | None:
        """A problem with other answers as one that a program answers and tests judge, and its reference program; else None."""
        return None

    @abstractmethod
    def fault(self, problem: Any, text: str) -> str:
        """The syntax error of a candidate, in a line; empty if there is none. Runs nothing."""

    def explained(self, feedback: str, text: str) -> str:
        """The verifier's feedback on a candidate, as a retry shows it to the author of the candidate."""
        return feedback

    def tokens(self, text: str) -> list[str] | None:
        """The tokens of a candidate without comments and blanks; None if Python's scanner reads it."""
        return None

    def layout(self, problem: Any, text: str) -> str | None:
        """A candidate without fault in its language's usual layout; None if there is none that is surely the same
        program."""
        return None


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
    """A valid module as ruff lays it out, docstrings to the letter; None if ruff does not take it, or changes more
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
    """The data of a prompt."""

    instruction: str
    before: str = ""
    """The program to edit or to repair; empty if the task is to write a new program."""
    given: str = ""
    """A signature, a header or an example that the program has to fit."""


def program_prompt(inputs: CodeInputs) -> str:
    """The prompt of a task."""
    return f"{statement(inputs)}\n\n{ANSWER}\n"


def statement(inputs: CodeInputs) -> str:
    """The instruction and its code, without a word on the form of the answer."""
    parts = [inputs.instruction.strip()]
    if inputs.before:
        parts.append(f"```python\n{inputs.before.strip(chr(10))}\n```")
    if inputs.given:
        lead = "It has to satisfy" if inputs.given.lstrip().startswith("assert") else ""
        shown = f"```python\n{inputs.given.strip(chr(10))}\n```"
        parts.append(f"{lead}\n{shown}" if lead else shown)
    return "\n\n".join(parts)
