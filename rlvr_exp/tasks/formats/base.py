"""What a format is: everything that is special about one kind of problem, but for its verifier."""

from abc import ABC, abstractmethod
from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import answer_text, without_thoughts
from rlvr_exp.tasks.formats.fields import Fields, text_of


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
    """What a completion answers with, in a word."""
    languages: tuple[str, ...] = ()
    """Languages of a fenced block that is an answer."""
    fixed_answers = ""
    """Import path of a function of a problem and a kind (plain or all) that yields names and texts of answers which know nothing
    of their task; empty: there are none."""
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
        """A prompt written from the problem alone. It shows what verifies the row: a few cases, the tests, the text
        after the edit."""

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
        """The syntax error of a candidate, in a line; empty where there is none. Runs nothing."""

    def tokens(self, text: str) -> list[str] | None:
        """The tokens of a candidate without comments and blanks; None if Python's scanner reads it."""
        return None

    def layout(self, problem: Any, text: str) -> str | None:
        """A candidate without fault in its language's usual layout; None where there is none that is surely the same
        program."""
        return None
