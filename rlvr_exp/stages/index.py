"""Write the overview of all runs below a folder as one HTML file in the folder."""

import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import DONE
from rlvr_exp.core.files import write_text
from rlvr_exp.launch.console import Progress
from rlvr_exp.view.overview import all_facts, overview


def main(config: Any, as_json: bool) -> int:
    folder = Path(config.index.path)
    with closing(Progress(0, "index", sys.stdout.isatty())) as progress:

        def report(done: int, total: int) -> None:
            progress.event({"kind": "phase", "name": "read", "done": done, "total": total, "unit": "runs"})

        runs = all_facts(folder, report)
        write_text(folder / "index.html", overview(folder, runs, datetime.now()))
        progress.event({"kind": "note", "text": f"{len(runs)} runs: {folder / 'index.html'}"})
    return DONE
