"""What came of a task: the answer that was chosen, and how it fared. Plain frozen data, and the same as a row of JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.rollouts.completion import Completion
from rlvr_exp.tasks.row_formats import RowId
from rlvr_exp.verifiers.base import Verdict

KEYS = (
    "id",
    "text",
    "program",
    "formatted",
    "fault",
    "outcome",
    "bucket",
    "rule",
    "score",
    "passed",
    "total",
    "log",
    "attempt",
    "attempts",
    "sample",
    "tokens",
    "logprob",
    "truncated",
    "earlier",
)
"""Of a row."""
DECIMALS = 6
"""Of a log-probability in a row."""


@dataclass(frozen=True)
class Attempt:
    """The best answer of an attempt."""

    attempt: int
    """Counted from 1."""
    prompt: tuple[int, ...]
    """Token ids."""
    answer: Completion

    @property
    def rank(self) -> tuple[int, float]:
        """Orders answers: one that passes, then by score; one without a verdict comes last."""
        return verdict_rank(self.answer.verdict)


@dataclass(frozen=True)
class Solution:
    """The answer to one task."""

    id: RowId
    text: str | None
    """The completion as it was drawn; None where the prompt was too long to ask."""
    program: str | None
    """The candidate in it, without fences and chatter: what is judged; None where there is none."""
    fault: str
    """What is wrong with the program's syntax, or why there is none; empty: nothing."""
    verdict: Verdict | None
    """None: nothing judged it, and nothing was wrong with it without that."""
    attempt: int
    """The attempt that the answer is from, counted from 1; 0: none was made."""
    attempts: int
    """How many were made."""
    sample: int
    """Place of the answer among the samples of its attempt."""
    tokens: int
    logprob: float | None
    """Of all its tokens together, by the policy itself: at temperature 1 and without filters, however it was drawn."""
    truncated: bool
    """The token limit ended it."""
    earlier: tuple[Attempt, ...] = ()
    """The other attempts, in order."""
    formatted: str | None = None
    """The same program laid out for a reader; None where that was not asked for, or cannot be done (see
    rlvr_exp.inference.layout). Never what is judged."""

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.outcome == "passed"

    def row(self) -> dict[str, Any]:
        """As JSON: what is the same for every batch layout and on every repetition."""
        logprob = None if self.logprob is None else round(self.logprob, DECIMALS)
        judged = _judged(self.verdict)
        earlier = [
            {"attempt": one.attempt, "text": _strict(one.answer.text), **_judged(one.answer.verdict)}
            for one in self.earlier
        ]
        return {
            "id": self.id,
            "text": _strict(self.text),
            "program": _strict(self.program),
            "formatted": _strict(self.formatted),
            "fault": _strict(self.fault),
            **judged,
            "attempt": self.attempt,
            "attempts": self.attempts,
            "sample": self.sample,
            "tokens": self.tokens,
            "logprob": logprob,
            "truncated": self.truncated,
            "earlier": earlier,
        }


def verdict_rank(verdict: Verdict) -> tuple[int, float]:
    """Orders verdicts: `passed`, then what was judged by its score, then what was not judged."""
    return {"passed": 2, "no_verdict": 0}.get(verdict.outcome, 1), verdict.score


def first_best(attempts: Sequence[Attempt]) -> Attempt:
    """The first of the best."""
    return max(attempts, key=lambda one: one.rank)


def _judged(verdict: Verdict | None) -> dict[str, Any]:
    names = ("outcome", "bucket", "rule", "score", "passed", "total", "log")
    if verdict is None:
        return dict.fromkeys(names)
    return {name: getattr(verdict, name) for name in names} | {"log": _strict(verdict.log)}


def _strict(text: str | None) -> str | None:
    """Without lone surrogates, which no strict reader of JSON takes."""
    return None if text is None else text.encode("utf-8", "replace").decode()
