"""The result of a task: the chosen completion and its verdict. Plain frozen data, and the same as a row of JSON."""

from dataclasses import dataclass
from typing import Any

from rlvr_exp.episodes.serialize import to_plain
from rlvr_exp.episodes.types import Completion
from rlvr_exp.evaluation.vote import Voted, VotedAnswer
from rlvr_exp.tasks.formats.fields import RowId
from rlvr_exp.verifiers.base import Verdict

VERDICT = ("outcome", "bucket", "rule", "score", "passed", "total", "log")
"""Keys of a verdict in a row."""
KEYS = (
    *("id", "text", "program", "formatted", "fault", *VERDICT),
    *("attempt", "attempts", "sample", "tokens", "logprob", "truncated", "earlier", "voted", "edited"),
)
"""Keys of a row."""
DECIMALS = 6
"""Decimals of a log-probability in a row."""


@dataclass(frozen=True)
class Attempt:
    """The best completion of an attempt."""

    attempt: int
    """Counted from 1."""
    prompt: tuple[int, ...]
    """Token ids."""
    completion: Completion

    def row(self) -> dict[str, Any]:
        plain = to_plain(self.completion)
        verdict = {name: strict(plain[name]) for name in VERDICT}
        return {"attempt": self.attempt, "text": strict(self.completion.text), **verdict}


@dataclass(frozen=True)
class Solution:
    """The result of a task."""

    id: RowId
    completion: Completion
    """The chosen one."""
    attempt: int
    """The attempt that found it, counted from 1; 0: the prompt was too long for any."""
    attempts: int
    """Number of attempts."""
    verified: bool
    """Its verdict is a verifier's, or that of a fault which shows without one."""
    fault: str = ""
    """The program's syntax error, or why there is no program; empty: none."""
    logprob: float | None = None
    """Log-probability of all its tokens under the policy, at temperature 1 without filters, however it was drawn; None:
    an endpoint did not report it."""
    earlier: tuple[Attempt, ...] = ()
    """The other attempts, in order."""
    formatted: str | None = None
    """The same program formatted for a reader; None where that was not requested, or is not possible (see
    rlvr_exp.tasks.formats.rows). Never verified."""
    voted: Voted | None = None
    """The vote of all completions on the held-back inputs; None: there was none, or a program got no verdict."""
    edited: str | None = None
    """Of edits in steps: the text that all steps have made; None where the last answer makes none."""

    @property
    def text(self) -> str | None:
        """The completion as it was drawn; None where the prompt was too long to sample."""
        return self.completion.text if self.attempt else None

    @property
    def program(self) -> str | None:
        """The candidate in it, without fences and chatter, which is verified; None where there is none."""
        return self.completion.candidate.text

    @property
    def verdict(self) -> Verdict | None:
        """None: it was not verified."""
        return self.completion.verdict if self.verified else None

    @property
    def passed(self) -> bool:
        return self.verified and self.completion.correct

    def row(self) -> dict[str, Any]:
        """As JSON, equal for every batch layout and on every repetition."""
        plain = to_plain(self.completion)
        found = {
            **(plain if self.verified else {**plain, **dict.fromkeys(VERDICT)}),
            **vars(self),
            "text": self.text,
            "program": self.program,
            "logprob": None if self.logprob is None else round(self.logprob, DECIMALS),
            "earlier": [one.row() for one in self.earlier],
            "voted": None if self.voted is None else vote_row(self.voted),
        }
        return {"id": self.id, **{name: strict(found[name]) for name in KEYS[1:]}}


def vote_row(voted: Voted) -> dict[str, Any]:
    """A vote as JSON: `answers`, a list for each held-back input, and `solved_with`."""
    answers = [[_answer(one) for one in of_input] for of_input in voted.answers]
    return {"answers": answers, "solved_with": voted.solved_with}


def _answer(one: VotedAnswer) -> dict[str, Any]:
    facts = {"votes": one.votes, "shown_right": round(one.shown_right, DECIMALS), "weight": round(one.weight, DECIMALS)}
    return {"output": _lists(one.output), **facts, "program": strict(one.program)}


def _lists(value: Any) -> Any:
    return list(map(_lists, value)) if isinstance(value, tuple) else value


def strict(value: Any) -> Any:
    """Texts without lone surrogates, which no strict reader of JSON takes, within lists and objects too; other values as they are."""
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list):
        return [strict(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
