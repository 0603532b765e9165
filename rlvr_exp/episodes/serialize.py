"""A completion as plain values and back: what checkpoints, the files of a run and answers hold of it.

A file keeps the keys that it has use for; what a row lacks is unknown in the completion read from it. Never held: CPU
seconds and cache hits of the verifier, which are the machine's, and the content of the task.
"""

import math
from collections.abc import Mapping
from typing import Any

from rlvr_exp.episodes.types import Completion, TokenCount, TokenSample
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

VERDICT = ("outcome", "bucket", "rule", "passed", "total", "log", "assertions", "own_assertions", "measures")
"""Fields of a verdict, which are keys of a row."""
STATE = ("sample", "completion", "sampled", "candidate", *VERDICT)
"""Keys from which a completion of a known task is restored in full, except for times."""
UNPARSED = Candidate(None, "a file's row holds no candidate: parse the text")


def to_plain(completion: Completion) -> dict[str, Any]:
    """All that is known, as values that JSON can hold; `completion` is the text."""
    sampled, verdict = completion.sampled, completion.verdict
    return {
        "task": completion.task.id,
        "family": completion.task.family,
        "sample": completion.sample,
        "completion": completion.text,
        "sampled": vars(sampled) if isinstance(sampled, TokenSample) else None,
        "tokens": completion.tokens,
        "truncated": completion.truncated,
        "candidate": vars(completion.candidate),
        **{name: getattr(verdict, name) for name in VERDICT},
        "score": verdict.score,
        "seconds": completion.seconds,
    }


def from_plain(row: Mapping[str, Any], task: Task | None = None) -> Completion:
    """The completion of a row with at least task, family, sample, completion, tokens, outcome, bucket and log, or with
    the keys of STATE.

    Args:
        task: the completion's task; None: only its id and family are known.

    Raises:
        ValueError, TypeError: the row holds no valid verdict.
    """
    known = {name: row[name] for name in VERDICT if name in row}
    if row["outcome"] == "rejected":
        known["rule"] = row.get("rule") or ""  # An evaluation's file does not say which.
    return Completion(
        task=task or Task(row["task"], row["family"], math.nan, inputs=None, problem=None),
        sample=row["sample"],
        sampled=_sampled(row),
        text=row["completion"],
        candidate=Candidate(**row["candidate"]) if "candidate" in row else UNPARSED,
        verdict=Verdict(**known),
        seconds=row.get("seconds", 0.0),
    )


def _sampled(row: Mapping[str, Any]) -> TokenSample | TokenCount:
    if row.get("sampled"):
        return TokenSample(**{name: _tuples(value) for name, value in row["sampled"].items()})
    return TokenCount(row["tokens"], row.get("truncated", row["bucket"] == "truncated"))


def _tuples(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list | tuple) else value
