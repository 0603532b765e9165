"""Answer a question with many runs, chosen by `study=NAME`. The file of the study defines its runs and its summary."""

from typing import Any

from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.runs.schedule import run_study


def run(config: Any, context: RunContext) -> StageResult:
    return run_study(config, context)
