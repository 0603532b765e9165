"""All files of a run directory without their times: the bytes that two runs with the same seed share.

Times are in: `created` of manifest.json; `seconds` and `latency` of evaluations; metrics named `time/...` and
`system/...`; the progress bars of libraries in log.txt; report.html, which draws all of these, and is therefore rebuilt
from the directory without them.
"""

import csv
import gzip
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from trajectories import held, solutions, without_machine

from rlvr_exp.report import write_report

OF_TIME = ("created", "seconds", "latency")
UNREAD = (".lock",)
BAR = re.compile(rb"\r?[^\r\n]*\d+%\|[^\r\n]*[\r\n]*")


def every_file(run: Path) -> dict[str, Any]:
    """Content by path; the content of a link is its target."""
    found: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        if path.is_symlink():
            found[name] = path.readlink().as_posix()
        elif path.is_file() and name not in UNREAD and path.name != "report.html":
            found[name] = held(path) if "checkpoints" in path.parts else _content(path)
    return found | {"report.html": _report(run)}


def _content(path: Path) -> Any:
    if path.suffix == ".sqlite":
        return solutions(path)
    if path.name == "metrics.csv":
        with open(path, newline="") as rows:
            return [timeless(row) for row in csv.DictReader(rows)]
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.name == "log.txt":
        return BAR.sub(b"", content)
    if ".jsonl" in path.name:
        return [timeless(json.loads(line)) for line in content.decode().splitlines()]
    return timeless(json.loads(content)) if path.suffix == ".json" else content


def timeless(value: Any) -> Any:
    """Without values that depend on time or on the machine, at any depth."""
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in without_machine(value).items() if key not in OF_TIME}
    return [timeless(part) for part in value] if isinstance(value, list) else value


def _report(run: Path) -> bytes:
    """The page as if every time were 0."""
    with tempfile.TemporaryDirectory() as place:
        # One path for all, since a page names its run.
        copy = Path(place).parent / "run-without-times"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy, symlinks=True, ignore=shutil.ignore_patterns("checkpoints", "log.txt"))
        for path in [*copy.rglob("*.json"), *copy.rglob("*.jsonl")]:
            lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            path.write_text("".join(json.dumps(_stopped(json.loads(line))) + "\n" for line in lines))
        for path in (copy / "evaluation").glob("*.gz"):
            rows = [_stopped(json.loads(line)) for line in gzip.decompress(path.read_bytes()).splitlines()]
            path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
        write_report(copy)
        try:
            return (copy / "report.html").read_bytes()
        finally:
            shutil.rmtree(copy)


def _stopped(value: Any) -> Any:
    """With 0 for values that depend on time or on the machine."""
    if isinstance(value, dict):
        timed = {key for key in value if key in OF_TIME or key.startswith(("time/", "system/"))}
        return {key: _zero(part) if key in timed else _stopped(part) for key, part in value.items()}
    return [_stopped(part) for part in value] if isinstance(value, list) else value


def _zero(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _zero(part) for key, part in value.items()}
    return "" if isinstance(value, str) else 0.0
