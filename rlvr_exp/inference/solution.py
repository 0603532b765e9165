"""The result of a task: the chosen completion and its verdict. Plain frozen data, and the same as a row of JSON."""

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

    @property
    def rank(self) -> tuple[int, float]:
        """Orders completions: a passing completion first, then by score; one without a verdict comes last."""
        return verdict_rank(self.completion.verdict)


@dataclass(frozen=True)
class Solution:
    """The result of a task."""

    id: RowId
    text: str | None
    """The completion as it was drawn; None where the prompt was too long to sample."""
    program: str | None
    """The candidate in it, without fences and chatter, which is verified; None where there is none."""
    fault: str
    """The program's syntax error, or why there is no program; empty: none."""
    verdict: Verdict | None
    """None: it was not verified, and it had no fault without verification."""
    attempt: int
    """The attempt that found it, counted from 1; 0: there was no attempt."""
    attempts: int
    """Number of attempts."""
    sample: int
    """Index of the completion among the samples of its attempt."""
    tokens: int
    logprob: float | None
    """Log-probability of all its tokens under the policy, at temperature 1 without filters, however it was drawn."""
    truncated: bool
    """The token limit ended it."""
    earlier: tuple[Attempt, ...] = ()
    """The other attempts, in order."""
    formatted: str | None = None
    """The same program formatted for a reader; None where that was not requested, or is not possible (see
    rlvr_exp.inference.layout). Never verified."""

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.outcome == "passed"

    def row(self) -> dict[str, Any]:
        """As JSON, equal for every batch layout and on every repetition."""
        logprob = None if self.logprob is None else round(self.logprob, DECIMALS)
        judged = _judged(self.verdict)
        earlier = [
            {"attempt": one.attempt, "text": _strict(one.completion.text), **_judged(one.completion.verdict)}
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
    """Orders verdicts: `passed`, then the other verdicts by score, then `no_verdict`."""
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
