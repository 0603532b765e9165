"""Write the report of a run anew: of a finished one, of one that goes on, of one that was killed.

Reads the run's directory, with those of runs drawn beside it; writes its report.html and nothing else, and tells the
diagnosis.
"""

from pathlib import Path
from typing import Any

from rlvr_exp.run.job import Job, Result
from rlvr_exp.run.report import write_report


def run(config: Any, job: Job) -> Result:
    written = write_report(Path(config.report.run), [Path(name) for name in config.report.beside])
    found = written.diagnosis
    job.progress(kind="note", text=f"report: {written.path}")
    job.progress(kind="note", text=f"diagnosis: {found.headline}")
    for finding in (*found.findings[1:], *found.notes):
        job.progress(kind="note", text=f"  also: {finding.title}")
    return Result(metrics={"causes": len(found.findings), "first_cause": found.headline, "outcome": found.outcome})
