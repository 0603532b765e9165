"""`report.html`: a self-contained page about a run, written from the files in its directory, with the diagnosis.

Works for a run of any stage, also for a run in progress or a killed run: missing data is not shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.files import write_text
from rlvr_exp.report.data import read_run
from rlvr_exp.report.diagnosis import Diagnosis, diagnose
from rlvr_exp.report.evidence import evidence
from rlvr_exp.report.page import page
from rlvr_exp.report.tasks import load_task_index, reference_answers


@dataclass(frozen=True)
class Report:
    """A written report."""

    path: Path
    diagnosis: Diagnosis
    trains: bool
    """The run's stage trains."""

    @property
    def root_cause(self) -> str:
        """The first cause of a run that did not learn, in one line. Empty if it learned or no cause was found."""
        found, learned = self.diagnosis.findings, self.diagnosis.outcome == "rose"
        return found[0].title if self.trains and found and not learned else ""


def write_report(run_dir: Path, others: Sequence[Path] = ()) -> Report:
    """Write the page into the run directory, and nothing else.

    Args:
        others: directories of runs to compare with.

    Raises:
        InputError: no such directory, or a file in it is damaged; names the file.
    """
    run = read_run(run_dir)
    prompts = {one.completion.task.id: one.prompt for answers in run.answers.values() for one in answers}
    known = load_task_index(run_dir, prompts)
    seen = evidence(run, reference_answers(run))
    found = diagnose(seen)
    path = run_dir / "report.html"
    write_text(path, page(run, known, found, [read_run(other) for other in others]))
    return Report(path, found, seen.trains)
