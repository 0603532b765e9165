"""The result of a task: the chosen completion and its verdict, as data, as a row of JSON and as text. Also rates and
counts over many results."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.measures import read_voted
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.episodes.types import Completion, to_plain
from rlvr_exp.evaluation.metrics import Rate
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

MOST_LINES = 40
"""Maximum number of displayed lines of a program or a text."""


@dataclass(frozen=True)
class Attempt:
    """The best completion of an attempt."""

    attempt: int
    """Counted from 1."""
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
    """The chosen completion."""
    attempt: int
    """The number of the chosen attempt, counted from 1; 0 if the prompt was too long for any attempt."""
    attempts: int
    """Number of attempts."""
    verified: bool
    """Whether the verdict comes from a verifier, or from a fault that is evident without one."""
    fault: str = ""
    """The syntax error of the program, or the reason for its absence; empty if it has neither."""
    logprob: float | None = None
    """Log-probability of all tokens under the policy, at temperature 1 and without filters, for any sampling options.
    None if an endpoint did not report it."""
    earlier: tuple[Attempt, ...] = ()
    """The other attempts, in order."""
    formatted: str | None = None
    """The same program formatted for a reader; None if this was not requested or is not possible (see
    rlvr_exp.tasks.formats.rows). It is never verified."""
    voted: Voted | None = None
    """The vote of all completions on the held-back inputs. None without a vote, and if a program got no verdict."""
    edited: str | None = None
    """For edits in steps: the text after all steps; None if the last answer makes no text."""

    @property
    def text(self) -> str | None:
        """The completion as sampled; None if the prompt was too long to sample."""
        return self.completion.text if self.attempt else None

    @property
    def program(self) -> str | None:
        """The verified program: the candidate in the completion, without fences and chatter, as the verifier revised it. None
        if there is no candidate."""
        return self.completion.verdict.revised or self.completion.candidate.text

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if the completion was not verified."""
        return self.completion.verdict if self.verified else None

    @property
    def passed(self) -> bool:
        return self.verified and self.completion.correct

    def row(self) -> dict[str, Any]:
        """Return a JSON row. It is equal for every batch layout and every repetition."""
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
    """Return a vote as JSON: `answers`, a list for each held-back input, and `solved_with`."""
    answers = [[_answer(one) for one in of_input] for of_input in voted.answers]
    return {"answers": answers, "solved_with": voted.solved_with}


def _answer(one: VotedAnswer) -> dict[str, Any]:
    facts = {"votes": one.votes, "shown_right": round(one.shown_right, DECIMALS), "weight": round(one.weight, DECIMALS)}
    return {"output": _lists(one.output), **facts, "program": strict(one.program)}


def _lists(value: Any) -> Any:
    return list(map(_lists, value)) if isinstance(value, tuple) else value


def strict(value: Any) -> Any:
    """Replace lone surrogates in texts, also within lists and objects, because strict readers of JSON reject them.
    Other values do not change."""
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list):
        return [strict(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def readable(row: Mapping[str, Any]) -> str:
    """Return a solution as text for a terminal: its result in one line, then the program, or the completion if there is
    no program."""
    lines = (row["formatted"] or row["program"] or row["text"] or "").rstrip("\n").split("\n")
    more = [f"[{len(lines) - MOST_LINES} more lines]"] if len(lines) > MOST_LINES else []
    shown = textwrap.indent("\n".join([*lines[:MOST_LINES], *more]), "    ")
    why = reason(row)
    return "\n".join([head(row), shown, *([f"    -> {why}"] if why else []), *_voted(row)])


def head(row: Mapping[str, Any]) -> str:
    """Return the result in one line."""
    why = row["bucket"] or row["rule"]
    parts = [
        f"{row['outcome'] or 'not judged'}{f' ({why})' if why else ''}",
        f"score {row['score']:.2f}" if row["score"] is not None else "",
        f"attempt {row['attempt']} of {row['attempts']}" if row["attempts"] > 1 else "",
        f"{row['tokens']} tokens",
        f"log-probability {row['logprob']:.2f}" if row["logprob"] is not None else "",
        "cut off at the token limit" if row["truncated"] else "",
    ]
    return f"{row['id']}: {', '.join(filter(None, parts))}"


def reason(row: Mapping[str, Any]) -> str:
    """Return the fault in one line, or the change that the verifier made; empty if there is neither."""
    why = row["log"] or "" if row["outcome"] == "passed" else row["fault"] or row["log"] or ""
    return next((line.strip() for line in why.splitlines() if line.strip()), "")[:300]


def _voted(row: Mapping[str, Any]) -> Iterator[str]:
    """Return a line for each answer of the vote, if there was one."""
    for number, answers in enumerate((row.get("voted") or {}).get("answers", ()), 1):
        for place, one in enumerate(answers, 1):
            facts = f"votes: {one['votes']}, shown pairs right: {one['shown_right']:.0%}"
            yield f"    held-back input {number}, answer {place} ({facts}): {json.dumps(one['output'])}"


class Summary:
    """Counts of results, from rows as they are in the file."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._buckets: Counter[str] = Counter()
        self._solved: list[int] = []
        """The number of the attempt that passed, for each task with a verdict; 0 if none passed."""
        self._votes: list[int] = []
        """The smallest number of answers that solved a task, for each task with a vote and known outputs; 0 if none
        did."""
        self._attempts = self._most = self._tokens = self._faults = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self._outcomes[row["outcome"] or "not_judged"] += 1
        if row["bucket"] or row["rule"]:
            self._buckets[row["bucket"] or row["rule"]] += 1
        if row["outcome"] not in (None, "no_verdict"):
            self._solved.append(row["attempt"] if row["outcome"] == "passed" else 0)
        if row.get("voted") and row["voted"]["solved_with"] is not None:
            self._votes.append(row["voted"]["solved_with"])
        self._attempts += row["attempts"]
        self._most = max(self._most, row["attempts"])
        self._tokens += row["tokens"]
        self._faults += bool(row["fault"])

    @property
    def tasks(self) -> int:
        return self._outcomes.total()

    def rates(self, attempts: int, samples: int, voted: Sequence[str] = ()) -> dict[str, Rate]:
        """Return, by name, the share of judged tasks that were solved within 1, 2, ... attempts. There are at least as
        many shares as any answer has attempts, so the last is the total share. The rates `voted` of the tasks with
        known outputs follow."""
        found, attempts = {}, max(attempts, self._most)
        if self._solved:
            attempted = range(1, attempts + 1)
            found = {f"pass_at_attempt_{limit}": _rate(self._solved, limit, samples) for limit in attempted}
        votes = {name: read_voted(name) for name in voted if self._votes}
        return found | {name: _rate(self._votes, vote[1], samples) for name, vote in votes.items() if vote}

    def metrics(self) -> dict[str, float]:
        """Return the counts. Outcomes and reasons that did not occur are left out."""
        outcomes = {f"outcome/{name}": count for name, count in sorted(self._outcomes.items())}
        reasons = {f"reason/{name}": count for name, count in sorted(self._buckets.items())}
        counts: dict[str, float] = {
            "tasks": self.tasks,
            "attempts": self._attempts,
            "tokens": self._tokens,
            "syntax_faults": self._faults,
        }
        return counts | outcomes | reasons

    def text(self) -> str:
        """Return a summary: `12 tasks: 6 passed, 6 failed; wrong_answer 4, truncated 2`."""
        outcomes = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self._outcomes.most_common())
        reasons = ", ".join(f"{name} {count}" for name, count in self._buckets.most_common())
        return f"{self.tasks} tasks: {outcomes or 'none'}{f'; {reasons}' if reasons else ''}"


def _rate(solved: Sequence[int], limit: int, samples: int) -> Rate:
    """Return the share of tasks that were solved with so many; 0 means not solved."""
    values = [float(0 < one <= limit) for one in solved]
    return Rate(*mean_interval(values), n=len(values), samples=samples)
