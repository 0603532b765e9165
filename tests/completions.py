"""Completions for tests, as if read from a file: of a task that is only a name."""

from typing import Any

from rlvr_exp.episodes.types import Completion, from_plain


def completion(task: str = "t", outcome: str = "passed", bucket: str | None = None, **more: Any) -> Completion:
    """`more`: other keys of a row."""
    row = dict(task=task, family="f", sample=0, completion="", tokens=1, outcome=outcome, bucket=bucket, log="")
    return from_plain({**row, **more})
