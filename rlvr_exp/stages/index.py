"""Write the overview of all runs below a folder as one HTML file."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import DONE
from rlvr_exp.core.files import write_text
from rlvr_exp.records.context import RunContext
from rlvr_exp.view.overview import all_facts, overview


def main(config: Any, context: RunContext, _: bool) -> int:
    folder = Path(config.index.path)
    output = Path(config.index.output or folder / "index.html")

    def report(done: int, total: int) -> None:
        context.progress(kind="phase", name="read", done=done, total=total, unit="runs")

    runs = list(all_facts(folder, report))
    write_text(output, overview(folder, runs, output, datetime.now()))
    context.progress(kind="note", text=f"{len(runs)} runs: {output}")
    return DONE
