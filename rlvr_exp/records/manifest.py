"""manifest.json: how a run was produced. The parent writes what it knows; a stage adds what only the stage learns.

Reads versions from package metadata, so that nothing heavy is imported.
"""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import rlvr_exp
from rlvr_exp.core.files import write_json
from rlvr_exp.core.secrets import masked

NAME = "manifest.json"
PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "bitsandbytes",
    "deepspeed",
    "datasets",
    "tokenizers",
    "safetensors",
    "numpy",
    "hydra-core",
    "omegaconf",
)


def begin(directory: Path, stage: str, seed: int, command: Sequence[str], created: str) -> None:
    """Write the manifest of a run that is about to start.

    Args:
        command: the command line, word by word.
        created: local time, ISO 8601.
    """
    write_json(
        directory / NAME,
        {
            "stage": stage,
            "seed": seed,
            "command": [masked(word) for word in command],
            "created": created,
            "versions": versions(),
            "git": _git(Path(rlvr_exp.__file__).parent),
            "platform": platform.platform(),
            "hardware": hardware(),
        },
    )


def mark_resumed(directory: Path, checkpoint: Path, command: Sequence[str], created: str) -> None:
    """Record from which checkpoint and under which versions the run is resumed; the earlier entries are kept."""
    entry = {"checkpoint": str(checkpoint), "command": [masked(word) for word in command], "created": created}
    update(directory, versions=versions(), resumed=[*_read(directory).get("resumed", []), entry])


def commands(directory: Path) -> list[list[str]]:
    """The commands that started and resumed the run, in their order; secrets in them are masked."""
    known = _read(directory) if (directory / NAME).is_file() else {}
    return [entry["command"] for entry in (known, *known.get("resumed", ())) if entry.get("command")]


def record_override(directory: Path, band: int, step: int, created: str) -> None:
    """Record the difficulty band that a start of the run sends its curriculum to, and the step after which; -1, no band, only
    where an earlier start named one."""
    earlier = _read(directory).get("overrides", [])
    if band >= 0 or earlier:
        update(directory, overrides=[*earlier, {"band": band, "after_step": step, "created": created}])


def resumed_from(directory: Path) -> Path | None:
    """The checkpoint that the run in this directory was resumed from; None for a run that started here."""
    resumed = _read(directory).get("resumed", [])
    return Path(resumed[-1]["checkpoint"]) if resumed else None


def _read(directory: Path) -> dict[str, Any]:
    return json.loads((directory / NAME).read_text(encoding="utf-8"))


def section(directory: Path, name: str) -> dict[str, Any]:
    """A section of the manifest; empty where it is missing."""
    return _read(directory).get(name) or {}


def update(directory: Path, **sections: Any) -> None:
    """Add sections, or replace those of the same name. One process of a run calls this."""
    write_json(directory / NAME, _read(directory) | sections)


def hardware() -> dict[str, Any]:
    """Cores that this process may use, and the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "memory_gb": round(memory / 2**30, 1)}


def versions() -> dict[str, str | None]:
    """Versions of the package, of Python and of the package's dependencies; None for those that are not installed."""
    own = {"rlvr_exp": rlvr_exp.__version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path) -> dict[str, Any] | None:
    """Commit of the checkout that the package runs from; None outside of a checkout."""
    commit = _git_output(folder, "rev-parse", "HEAD")
    # A package installed somewhere inside another repository is not part of it.
    if commit is None or _git_output(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return {"commit": commit, "dirty": bool(_git_output(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git_output(folder: Path, *arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(folder), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
