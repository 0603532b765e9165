"""The output of a verification: one verdict per line, in the order of the input, and the counts of these verdicts."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rlvr_exp.core.statistics import wilson
from rlvr_exp.records.resumable_jsonl import ResumableJsonl, shown
from rlvr_exp.tasks.formats.fields import RowId
from rlvr_exp.verifiers.base import OUTCOMES, Verdict

KEYS = ("id", "outcome", "bucket", "rule", "score", "passed", "total", "seconds", "cached", "log")


def row_of(identity: RowId, verdict: Verdict) -> dict[str, Any]:
    """A verdict as a row of the file."""
    own = {"id": identity, "score": verdict.score, "seconds": round(verdict.seconds, 6), "log": shown(verdict.log)}
    values = {**vars(verdict), **own}
    return {name: values[name] for name in KEYS}


class VerdictFile(ResumableJsonl):
    """The file of verdicts; `provenance` is everything that determines them."""

    option = "verify.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return tuple(row) == KEYS and row["outcome"] in OUTCOMES


class VerdictCounter:
    """Counts rows of a file of verdicts."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._buckets: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._seconds = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        self._outcomes[row["outcome"]] += 1
        if row["bucket"]:
            self._buckets[row["bucket"]] += 1
        if row["rule"]:
            self._rules[row["rule"]] += 1
        self._seconds += row["seconds"]

    def metrics(self) -> dict[str, float]:
        """Counts; a bucket or rule that did not occur is left out."""
        counts: dict[str, float] = {"rows": self._outcomes.total()}
        counts |= {f"outcome/{name}": self._outcomes[name] for name in OUTCOMES}
        counts |= {f"bucket/{name}": count for name, count in sorted(self._buckets.items())}
        counts |= {f"rule/{name}": count for name, count in sorted(self._rules.items())}
        return counts | {"time/candidates_cpu": self._seconds}

    def passed(self) -> dict[str, Mapping[str, float | int]]:
        """Share that passed of the rows that have a verdict, each row a trial of its own; empty without any."""
        judged = self._outcomes.total() - self._outcomes["no_verdict"]
        if not judged:
            return {}
        return {"passed": {**wilson(self._outcomes["passed"], judged)._asdict(), "n": judged, "samples": 1}}

    def text(self) -> str:
        """`12 rows: 6 passed, 4 failed (wrong_answer 3, timeout 1), 1 rejected (signature-changed 1), 1 no_verdict`."""
        inside = {"failed": self._buckets, "rejected": self._rules}
        parts = []
        for name in OUTCOMES:
            if self._outcomes[name]:
                reasons = ", ".join(f"{key} {count}" for key, count in inside.get(name, Counter()).most_common())
                parts.append(f"{self._outcomes[name]} {name}" + (f" ({reasons})" if reasons else ""))
        return f"{self._outcomes.total()} rows: {', '.join(parts) or 'none'}"
