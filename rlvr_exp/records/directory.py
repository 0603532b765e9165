"""The run directory: its name, the lock that gives it to a single run, and failures to write into it.

A run claims its directory by a lock on RUN/.lock, which the parent holds until it ends. A directory with another run is refused
before anything is written. Every file of a run is written under a temporary name and renamed, so the previous file stays
complete if the disk is full.
"""

import errno
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem

OWN = (
    "config.yaml",
    "manifest.json",
    "metrics.jsonl",
    "metrics.csv",
    "rollouts",
    "evaluation",
    "checkpoints",
    "summary.json",
    "report.html",
    "log.txt",
    "compare.json",
    "compare.md",
    "verdicts.jsonl",
    "answers.jsonl",
)
"""Files that a run writes; any of these in a directory means that it holds a run."""
BEGUN = ("config.yaml", "manifest.json", "summary.json", "report.html", "log.txt")
"""Those of them that a run writes before it has anything to show."""

SCRATCH = ".scratch_"
"""How the name of a folder begins that goes with the command that made it."""


def fresh(root: Path, name: str) -> Path:
    """Create a new folder of that name, with a suffix when the name is taken.

    Raises:
        InputError: the root cannot be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        for suffix in ("", *(f"_{number}" for number in range(2, 10_000))):
            try:
                (root / f"{name}{suffix}").mkdir()
            except FileExistsError:
                continue
            return root / f"{name}{suffix}"
    except OSError as fault:
        raise InputError(_unwritable(root, fault)) from fault
    raise InputError(InputProblem(str(root), "too many runs of one name", name, remedy="set run.dir=DIR"))


def default_directory(stage: str, now: datetime) -> Path:
    """A new `outputs/DATE/TIME_STAGE` below the current folder."""
    return fresh(Path("outputs") / f"{now:%Y-%m-%d}", f"{now:%H-%M-%S}_{stage}")


def scratch_directory(run: Path) -> Path:
    """A new hidden folder in a run's directory, for a command that writes into that run and leaves nothing else."""
    try:
        return Path(tempfile.mkdtemp(prefix=SCRATCH, dir=run))
    except OSError as fault:
        raise InputError(_unwritable(run, fault)) from fault


def problem_with(directory: Path, resumes: bool = True) -> InputProblem | None:
    """Why a run cannot start in a directory chosen by the user; None when it can. Writes nothing.

    Args:
        resumes: whether a run of its stage can be resumed.
    """
    if directory.exists() and not directory.is_dir():
        return InputProblem("run.dir", "not a folder", str(directory), "a new or empty folder")
    found = [name for name in OWN if (directory / name).exists()]
    if found and not never_started(directory):
        remedy = "run.resume=auto to resume it, " * resumes + "another run.dir, or none for a new one"
        return InputProblem(
            "run.dir", "holds another run", f"{directory} with {', '.join(found)}", "a new or empty folder", "", remedy
        )
    return None


def never_started(directory: Path) -> bool:
    """Whether all that a directory holds is a run that failed before it measured anything or did a step."""
    if not directory.is_dir() or any(not _of_start(path.name) for path in directory.iterdir()):
        return False
    try:
        summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        config = (directory / "config.yaml").is_file()
    except (OSError, ValueError):
        return False
    return config and summary.get("status") == "failed" and summary.get("steps") == 0


def _of_start(name: str) -> bool:
    return name in BEGUN or name == ".lock" or name.startswith("log.rank")


def _clear(directory: Path) -> None:
    """Remove what a run left that never started."""
    for path in [path for path in directory.iterdir() if path.name != ".lock"]:
        path.unlink()


@contextmanager
def claimed(directory: Path, resuming: bool = False) -> Iterator[Path]:
    """Hold a directory, created if missing, for a single run: a new run, or the run already in it where `resuming`.

    Raises:
        InputError: it holds another run, another process holds it, or it cannot be written.
    """
    problem = None if resuming else problem_with(directory)
    if problem is not None:
        raise InputError(problem)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise InputError(_unwritable(directory, fault)) from fault
    try:
        _lock(handle, directory)
        problem = None if resuming else problem_with(directory)  # A run may have ended before the lock was held.
        if problem is not None:
            raise InputError(problem)
        if not resuming and never_started(directory):
            _clear(directory)
        yield directory
    finally:
        # Unlock explicitly: a process that is just being started may still hold a copy of the descriptor.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _lock(handle: int, directory: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        remedy = "wait for it to end, or choose another run.dir"
        raise InputError(
            InputProblem("run.dir", "a run is in progress in it", str(directory), "", "", remedy)
        ) from fault


def _unwritable(directory: Path, fault: OSError) -> InputProblem:
    return InputProblem("run.dir", f"cannot be written: {fault.strerror}", str(directory), remedy="set run.dir=DIR")


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""No space, over quota, file too large, read-only: failures of the disk, whichever file was written."""
DENIED = (errno.EACCES, errno.EPERM)
TEXTS = re.compile(r"\(os error (\d+)\)|PytorchStreamWriter failed writing file|enforce fail at inline_container")
"""How Safetensors and torch word it."""


class Unwritable(GuardStop):
    """A file of the run cannot be written; existing files are complete."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Context for any write of a file or folder of the run.

    Raises:
        Unwritable: the disk is full or the folder refuses the write. Any other failure is raised as it is.
    """
    try:
        yield
    except Exception as fault:
        reason = _reason(fault)
        if reason is None:
            raise
        raise _stop(path, reason) from fault


def unwritable(fault: BaseException, run_dir: Path) -> Unwritable | None:
    """The stop for a failure that came from anywhere in a run, where it is a failure of the disk; None for any
    other."""
    reason = _reason(fault)
    named: Any = getattr(fault, "filename", None)
    inside = isinstance(named, str | Path) and Path(named).absolute().is_relative_to(run_dir.absolute())
    if reason is None or (getattr(fault, "errno", None) in DENIED and not inside):
        return None
    return _stop(Path(named) if inside else run_dir, reason)


def _stop(path: Path, reason: str) -> Unwritable:
    return Unwritable(
        f"{path} cannot be written: {reason}. Files written before are complete, the last checkpoint included. Make "
        f"room or mend the permissions (df -h {path.parent}; ls -ld {path.parent}), then resume from the last checkpoint"
    )


def _reason(fault: BaseException) -> str | None:
    """Why a write failed, in the system's words; None for any other failure."""
    if isinstance(fault, OSError):
        return os.strerror(fault.errno) if fault.errno in (*FULL, *DENIED) else None
    found = TEXTS.search(str(fault))
    if found is None:
        return None
    if found[1] is None:
        return "the disk takes no more, or the folder may not be written"
    return os.strerror(int(found[1])) if int(found[1]) in (*FULL, *DENIED) else None
