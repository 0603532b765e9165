"""OUT.jsonl of a verification: one verdict per line, in the order of the input. Never verifies."""

from typing import Any

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
