"""summary.json: how a run ended and what it measured. Written once, by the process that knows the outcome."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, INTERRUPTED
from rlvr_exp.core.files import write_json
from rlvr_exp.records.context import StageResult

NAME, BENCHMARK = "summary.json", "benchmark.json"
"""Of a run; and beside it what a benchmark measured."""
COMPLETED = "completed"
STATUS = {DONE: COMPLETED, GUARD: "stopped", INTERRUPTED: "interrupted", BAD_INPUT: "failed", FAULT: "failed"}
"""The status of each exit code."""


def write_summary(directory: Path, stage: str, exit_code: int, seconds: float, result: StageResult) -> None:
    write_json(
        directory / NAME,
        {
            "stage": stage,
            "status": STATUS[exit_code],
            "reason": result.reason,
            "steps": result.steps,
            "seconds": round(seconds, 3),
            "before": _plain(result.before),
            "after": _plain(result.after),
            "metrics": _plain(result.metrics),
        },
    )


def read_benchmark(directory: Path) -> Any:
    """What a benchmark measured."""
    return json.loads((directory / BENCHMARK).read_text(encoding="utf-8"))


def with_diagnosis(directory: Path, summary: Mapping[str, Any], cause: str) -> dict[str, Any]:
    """The summary with the first cause for which a run did not learn, written where a summary exists."""
    extended = {**summary, "diagnosis": cause}
    if (directory / NAME).is_file():
        write_json(directory / NAME, extended)
    return extended


def read_summary(directory: Path) -> dict[str, Any] | None:
    """The summary of a run; None where it has none yet."""
    path = directory / NAME
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _plain(value: Any) -> Any:
    """The value as JSON types; a number that is not finite becomes null, as strict JSON requires."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
