"""OUT.jsonl of a verification: one verdict per line, in the order of the input. Never verifies."""

from typing import Any

from rlvr_exp.records.resumable_jsonl import ResumableJsonl, shown
from rlvr_exp.tasks.row_formats import RowId
from rlvr_exp.verifiers.base import OUTCOMES, Verdict

KEYS = ("id", "outcome", "bucket", "rule", "score", "passed", "total", "seconds", "cached", "log")


def row_of(identity: RowId, verdict: Verdict) -> dict[str, Any]:
    """A verdict as a row of the file."""
    return {
        "id": identity,
        "outcome": verdict.outcome,
        "bucket": verdict.bucket,
        "rule": verdict.rule,
        "score": verdict.score,
        "passed": verdict.passed,
        "total": verdict.total,
        "seconds": round(verdict.seconds, 6),
        "cached": verdict.cached,
        "log": shown(verdict.log),
    }


class VerdictFile(ResumableJsonl):
    """The file of verdicts; `provenance` is everything that determines them."""

    option = "verify.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return tuple(row) == KEYS and row["outcome"] in OUTCOMES
