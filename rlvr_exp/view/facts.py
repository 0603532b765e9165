"""Run directories below a folder, and the facts of each that an overview shows. Reads files, writes none.

Nothing outside of the folder is read: a symbolic link that leaves it counts as a missing file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.records.context import SUMMARY
from rlvr_exp.records.manifest import MAX_STEPS, NAME, flat, trajectory_options
from rlvr_exp.report.data import WHENS, is_locked
from rlvr_exp.report.page import label_of, model_of

SKIPPED = frozenset({"rollouts", "evaluation", "checkpoints", "journal"})
"""Folders of a run that hold no runs."""
CONFIG = "config.yaml"
PAGES = ("report.html", "study.html")
"""Pages that a run writes."""
FILES = (CONFIG, NAME, SUMMARY, *PAGES, "metrics.jsonl", *(f"evaluation/{when}.json" for when in WHENS))
"""Files that facts come from."""
NODES = ("model", "data", "roles", "evaluate", "infer")
"""Nodes of the configuration that are read by name."""
RUNNING, UNFINISHED = "running", "not finished"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Facts = dict[str, Any]


def inside(root: Path, path: Path) -> Path | None:
    """The path without symbolic links if it is a regular file below `root`, which has none; else None."""
    real = path.resolve()
    return real if real.is_relative_to(root) and real.is_file() else None


def find_runs(root: Path) -> Iterator[Path]:
    """Directories with a config.yaml at or below a folder, in the order of their paths. Follows no link to a folder."""
    for folder, names, files in os.walk(root):
        is_run = CONFIG in files
        names[:] = sorted(name for name in names if name[0] != "." and not (is_run and name in SKIPPED))
        if is_run:
            yield Path(folder)


def signature(root: Path, directory: Path) -> str:
    """Sizes and times of the files that facts come from, and whether a process runs the run."""
    found: list[Any] = [_is_running(root, directory)]
    for name in FILES:
        if (path := inside(root, directory / name)) is not None:
            state = path.stat()
            found.append([name, state.st_size, state.st_mtime_ns])
    return json.dumps(found)


def read_facts(root: Path, directory: Path, last_step: int = 0) -> Facts | None:
    """Facts of a run as plain values; None for a folder whose config.yaml names no stage.

    Args:
        last_step: the last step that the metrics have, for a run without a summary.
    """
    problems: list[str] = []

    def read(name: str) -> Mapping[str, Any]:
        try:
            path = inside(root, directory / name)
            text = path.read_text(encoding="utf-8") if path else ""
            values = yaml.load(text, _LOADER) if name == CONFIG else json.loads(text or "{}")
        except (OSError, ValueError, yaml.YAMLError) as fault:
            problems.append(f"{name}: {' '.join(str(fault).split())[:200]}")
            return {}
        return _mapping(values)

    config, manifest, summary = read(CONFIG), read(NAME), read(SUMMARY)
    config = {name: _mapping(value) if name in NODES else value for name, value in config.items()}
    stage = config.get("stage") or summary.get("stage")
    if not isinstance(stage, str) and not problems:
        return None
    measured = {when: _mapping(summary.get(when) or read(f"evaluation/{when}.json").get("rates")) for when in WHENS}
    rates = {
        when: {name: rate for name, rate in of.items() if "value" in _mapping(rate)} for when, of in measured.items()
    }
    metrics = dict.fromkeys(metric for of in rates.values() for metric in of)
    options = trajectory_options({key: value for key, value in config.items() if key != "seed"})
    return {
        "path": directory.relative_to(root).as_posix(),
        "stage": str(stage or "unknown"),
        "status": RUNNING if _is_running(root, directory) else summary.get("status") or UNFINISHED,
        "reason": summary.get("reason") or "",
        "model": model_of(config) if config else "",
        "data": label_of(config.get("data", {})),
        "seed": config.get("seed"),
        "steps": summary.get("steps") or last_step,
        "planned": flat(config).get(MAX_STEPS) or 0,
        "seconds": summary.get("seconds"),
        "created": str(manifest.get("created") or ""),
        "tags": _tags(manifest.get("command") or ()),
        "arm": content_hash(options),
        "rates": {metric: [rates[when].get(metric) for when in WHENS] for metric in metrics},
        "pages": [name for name in PAGES if inside(root, directory / name)],
        "diagnosis": summary.get("diagnosis") or "",
        "problems": problems,
    }


def _mapping(value: Any) -> dict[str, Any]:
    """The mapping; empty for anything else, such as a value in a file of another program."""
    return value if isinstance(value, dict) else {}


def _is_running(root: Path, directory: Path) -> bool:
    """Whether a process runs it. The lock of a finished run is never touched."""
    lock = None if (directory / SUMMARY).exists() else inside(root, directory / ".lock")
    return lock is not None and is_locked(lock)


def _tags(command: Any) -> list[str]:
    """The experiments that the command names."""
    given = [str(word).partition("=")[2] for word in command if str(word).lstrip("+").startswith("experiment=")]
    return [name for value in given for name in value.strip("[]").split(",") if name]
