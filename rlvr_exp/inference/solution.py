"""The result of a task: the chosen completion and its verdict, as data, as a row of JSON and as text; rates and counts over many."""

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
"""Lines of a program or a text that are shown."""


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
    """The same program formatted for a reader; None if that was not requested, or is not possible (see
    rlvr_exp.tasks.formats.rows). Never verified."""
    voted: Voted | None = None
    """The vote of all completions on the held-back inputs; None: there was none, or a program got no verdict."""
    edited: str | None = None
    """Of edits in steps: the text that all steps have made; None if the last answer makes none."""

    @property
    def text(self) -> str | None:
        """The completion as it was drawn; None if the prompt was too long to sample."""
        return self.completion.text if self.attempt else None

    @property
    def program(self) -> str | None:
        """The candidate in it, without fences and chatter, which is verified; None if there is none."""
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


def readable(row: Mapping[str, Any]) -> str:
    """A solution on a terminal: its result in a line, then the program, or the text if there is none."""
    lines = (row["formatted"] or row["program"] or row["text"] or "").rstrip("\n").split("\n")
    more = [f"[{len(lines) - MOST_LINES} more lines]"] if len(lines) > MOST_LINES else []
    shown = textwrap.indent("\n".join([*lines[:MOST_LINES], *more]), "    ")
    why = reason(row)
    return "\n".join([head(row), shown, *([f"    -> {why}"] if why else []), *_voted(row)])


def head(row: Mapping[str, Any]) -> str:
    """The result in a line."""
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
    """What is wrong with it, in a line; empty if nothing is."""
    why = "" if row["outcome"] == "passed" else row["fault"] or row["log"] or ""
    return next((line.strip() for line in why.splitlines() if line.strip()), "")[:300]


def _voted(row: Mapping[str, Any]) -> Iterator[str]:
    """A line for each answer of the vote, where there was one."""
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
        """For each task with a verdict the attempt that passed; 0: none did."""
        self._votes: list[int] = []
        """For each task with a vote and known outputs the fewest answers that solved it; 0: none did."""
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
        """Share of the judged tasks that were solved within so many attempts, at least as many as an answer has; the last is the
        share solved at all. Then the rates `voted`, by name, of the tasks whose outputs are known."""
        found, attempts = {}, max(attempts, self._most)
        if self._solved:
            attempted = range(1, attempts + 1)
            found = {f"pass_at_attempt_{limit}": _rate(self._solved, limit, samples) for limit in attempted}
        votes = {name: read_voted(name) for name in voted if self._votes}
        return found | {name: _rate(self._votes, vote[1], samples) for name, vote in votes.items() if vote}

    def metrics(self) -> dict[str, float]:
        """Counts; an outcome or a reason that did not occur is left out."""
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
        """`12 tasks: 6 passed, 6 failed; wrong_answer 4, truncated 2`."""
        outcomes = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self._outcomes.most_common())
        reasons = ", ".join(f"{name} {count}" for name, count in self._buckets.most_common())
        return f"{self.tasks} tasks: {outcomes or 'none'}{f'; {reasons}' if reasons else ''}"


def _rate(solved: Sequence[int], limit: int, samples: int) -> Rate:
    """Share of tasks solved with so many; 0 is not solved."""
    values = [float(0 < one <= limit) for one in solved]
    return Rate(*mean_interval(values), n=len(values), samples=samples)
