"""The overview of all runs below a folder as one HTML file without a server."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rlvr_exp.core.measures import scale_of
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.page import document
from rlvr_exp.report.rendering import duration, part
from rlvr_exp.view.facts import Facts, find_runs, inside, read_facts


def all_facts(folder: Path, report: Callable[[int, int], None]) -> list[Facts]:
    """Facts of the runs at or below a folder, the newest first.

    Args:
        report: called with the number of runs that have been read, and of all.
    """
    root = folder.resolve()
    directories = list(find_runs(root))
    found: list[Facts] = []
    for done, directory in enumerate(directories):
        report(done, len(directories))
        facts = read_facts(root, directory)
        if facts is None:
            continue
        if not facts["steps"] and inside(root, directory / "metrics.jsonl"):
            facts["steps"] = max((int(row["step"]) for row in read_metrics(directory)), default=0)
        found.append(facts)
    report(len(directories), len(directories))
    return sorted(found, key=lambda facts: facts["created"], reverse=True)


def overview(folder: Path, runs: list[Facts], written: datetime) -> str:
    """The page. Its links to the pages of runs are relative to the folder."""
    metrics = list(dict.fromkeys(metric for run in runs for metric in run["rates"]))
    metric = metrics[0] if metrics else "success"

    def shown(rate: Any) -> tuple[Any, list[str]]:
        ends = ("value", "low", "high")
        return rate, [] if rate is None else [scale_of(metric).shown(rate[end]) for end in ends]

    rows = []
    for run in runs:
        link = quote(f"{run['path']}/{run['pages'][-1]}") if run["pages"] else ""
        before, after = map(shown, run["rates"].get(metric, (None, None)))
        took = "" if run["seconds"] is None else duration(run["seconds"])
        rows.append((run, link, run["steps"], before, after, run["created"][:16].replace("T", " "), took))
    body = part("overview", folder=str(folder), written=f"{written:%Y-%m-%d %H:%M}", metric=metric, rows=rows)
    return document("Runs", body)
