"""Rewrite the report of a run that is finished, in progress, or killed.

The stage reads the directories of the run and of the runs to compare with. It writes report.html and prints the
diagnosis.
"""

from pathlib import Path
from typing import Any

from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.report import write_report


def run(config: Any, context: RunContext) -> StageResult:
    written = write_report(Path(config.report.run), [Path(name) for name in config.report.beside])
    found = written.diagnosis
    context.progress(kind="note", text=f"report: {written.path}")
    context.progress(kind="note", text=f"diagnosis: {found.headline}")
    for finding in (*found.findings[1:], *found.notes):
        context.progress(kind="note", text=f"  also: {finding.title}")
    return StageResult(metrics={"causes": len(found.findings), "first_cause": found.headline, "outcome": found.outcome})
