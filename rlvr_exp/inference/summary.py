"""Results for a person: a solution as text, many as rates and counts."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlvr_exp.core.measures import read_voted
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate

MOST_LINES = 40
"""Lines of a program or a text that are shown."""


def readable(row: Mapping[str, Any]) -> str:
    """A solution on a terminal: its result in a line, then the program, or the text where there is none."""
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
    """What is wrong with it, in a line; empty where nothing is."""
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
        self._attempts = self._tokens = self._faults = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self._outcomes[row["outcome"] or "not_judged"] += 1
        if row["bucket"] or row["rule"]:
            self._buckets[row["bucket"] or row["rule"]] += 1
        if row["outcome"] not in (None, "no_verdict"):
            self._solved.append(row["attempt"] if row["outcome"] == "passed" else 0)
        if row.get("voted") and row["voted"]["solved_with"] is not None:
            self._votes.append(row["voted"]["solved_with"])
        self._attempts += row["attempts"]
        self._tokens += row["tokens"]
        self._faults += bool(row["fault"])

    @property
    def tasks(self) -> int:
        return self._outcomes.total()

    def rates(self, attempts: int, samples: int, voted: Sequence[str] = ()) -> dict[str, Rate]:
        """Share of the judged tasks that were solved within so many attempts; the last is the share solved at all. Then the
        rates `voted`, by name, of the tasks whose outputs are known."""
        found = {}
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
