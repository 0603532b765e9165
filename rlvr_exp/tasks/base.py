"""What is asked. A Task is data; a Domain knows how to load tasks, word them, and read an answer back.

Nothing here knows models, trainers or how an answer is judged beyond naming the problem that a verifier takes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.hashing import content_hash

AGAIN = """{prompt}

This answer was given before and did not pass:

{answer}

The verifier said of it:

{said}

Answer again, whole, without that fault.
"""
"""How a domain without words of its own asks again."""


@dataclass(frozen=True)
class Task:
    """One task. `problem` is what its verifier judges candidates against; `puzzle` is what its prompt is worded from."""

    id: str
    family: str
    difficulty: float
    """Documented per domain; comparable within a domain, larger is harder."""
    puzzle: Any
    problem: Any
    gold: str | None = None
    """A completion that the verifier accepts, where one is known: what SFT imitates."""
    wrong: tuple[str, ...] = ()
    """Completions that the data set itself gives as wrong: none may pass."""


@dataclass(frozen=True)
class Candidate:
    """What a verifier judges: the part of a completion that is the answer. `None` text means it could not be parsed."""

    text: str | None
    fault: str = ""
    """Why there is no text, for the log of a `parse` verdict."""


class Domain(ABC):
    """A kind of task. Built from the `data` group; one file per domain."""

    name: str
    ends: str = ""
    """What a completion ends with that `finished` calls whole; empty: its end token alone ends it."""

    @abstractmethod
    def splits(self) -> Mapping[str, Sequence[Task]]:
        """Every split by name, in a reproducible order. Raises InputError naming file, key and fault for bad data."""

    def left_out(self) -> Mapping[str, str]:
        """Tasks of the data that stand in no split, by id, each with the reason."""
        return {}

    @abstractmethod
    def prompt(self, task: Task) -> str:
        """The full text that asks for the task, without chat markup."""

    def prompt_again(self, task: Task, answer: str, said: str) -> str:
        """What asks for the task once more after an answer that did not pass. `said`: what the verifier said of it."""
        return AGAIN.format(prompt=self.prompt(task).rstrip("\n"), answer=answer.strip("\n"), said=said.strip("\n"))

    def compared(self, completion: str, task: Task) -> tuple[str, str] | None:
        """An answer and the gold as words with blanks between them, for measures of likeness; None: likeness tells nothing,
        as where one task has many right answers of other forms."""
        return None

    def groups(self, task: Task) -> Mapping[str, str]:
        """What a task belongs to beside its family, by the kind of group: `{"role": "writer", "length": "32 to 63"}`."""
        return {}

    def fingerprint(self, split: str) -> str:
        """A hash of all that the tasks of a split are, for the manifest."""
        return content_hash(self.splits()[split])

    def finished(self, text: str) -> bool:
        """Whether a completion that has come so far is whole, so that nothing after it would count; asked where `ends` is
        new in it. A domain that says so needs no token that ends a completion."""
        return False

    @abstractmethod
    def parse(self, completion: str, task: Task) -> Candidate:
        """The candidate inside a completion of the task (fences, chatter and repeated headers removed)."""
