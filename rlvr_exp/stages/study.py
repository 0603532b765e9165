"""Answer a question by many runs, chosen by `study=NAME`: what is run and how it is summarised is the study's own file."""

from typing import Any

from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.runs.schedule import run_study


def run(config: Any, context: RunContext) -> StageResult:
    return run_study(config, context)
