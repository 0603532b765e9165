"""`report.html`: one self-contained page about a run, written from what its directory holds.

Works for a run of any stage, and for one that is still going on or was cut short: what is not there is not shown.
"""

from pathlib import Path

from rlvr_exp.core.files import write_text
from rlvr_exp.run.report.data import read_run
from rlvr_exp.run.report.page import page


def write_report(run_dir: Path) -> Path:
    """Write the page into the run directory and return its path.

    Raises:
        InputError: no such directory, or one of its files is damaged; names the file.
    """
    path = run_dir / "report.html"
    write_text(path, page(read_run(run_dir)))
    return path
