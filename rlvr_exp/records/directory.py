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

BEGUN = ("config.yaml", "manifest.json", "summary.json", "report.html", "log.txt")
"""Files that a run writes before its first result."""
OWN = (
    *BEGUN, "metrics.jsonl", "metrics.csv", "rollouts", "evaluation", "checkpoints", "compare.json", "compare.md",
    "verdicts.jsonl", "answers.jsonl",
)  # fmt: skip
"""Files that a run writes. A directory with any of them contains a run."""
SCRATCH = ".scratch_"
"""Prefix of folders that are removed when their command ends."""


def fresh(root: Path, name: str) -> Path:
    """Create a new folder, with a suffix if the name is taken.

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
    """A new hidden folder in the directory of a run, for a command that writes into that run."""
    try:
        return Path(tempfile.mkdtemp(prefix=SCRATCH, dir=run))
    except OSError as fault:
        raise InputError(_unwritable(run, fault)) from fault


def problem_with(directory: Path, resumes: bool = True) -> InputProblem | None:
    """The reason why a run cannot start in a directory chosen by the user, or None. Writes nothing.

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
    """Whether the directory only contains a run that failed before its first step or measurement."""
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else [""]
    if not all(name in BEGUN or name == ".lock" or name.startswith("log.rank") for name in names):
        return False
    try:
        summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        config = (directory / "config.yaml").is_file()
    except (OSError, ValueError):
        return False
    return config and summary.get("status") == "failed" and summary.get("steps") == 0


@contextmanager
def claimed(directory: Path, resuming: bool = False) -> Iterator[Path]:
    """Lock a directory, created if missing, for a new run, or for the run in it if `resuming`.

    Raises:
        InputError: the directory contains another run, another process has locked it, or it cannot be written.
    """
    if not resuming and (problem := problem_with(directory)):
        raise InputError(problem)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise InputError(_unwritable(directory, fault)) from fault
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            what, remedy = "a run is in progress in it", "wait for it to end, or choose another run.dir"
            raise InputError(InputProblem("run.dir", what, str(directory), "", "", remedy)) from fault
        if not resuming:
            if problem := problem_with(directory):  # A run may have ended before the lock was acquired.
                raise InputError(problem)
            for path in [*directory.iterdir()] if never_started(directory) else ():
                if path.name != ".lock":
                    path.unlink()
        yield directory
    finally:
        # Unlock explicitly: a process that is just being started may still hold a copy of the descriptor.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _unwritable(directory: Path, fault: OSError) -> InputProblem:
    return InputProblem("run.dir", f"cannot be written: {fault.strerror}", str(directory), remedy="set run.dir=DIR")


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""No space, over quota, file too large, read-only: failures of the disk, whichever file was written."""
DENIED = (errno.EACCES, errno.EPERM)
TEXTS = re.compile(r"\(os error (\d+)\)|PytorchStreamWriter failed writing file|enforce fail at inline_container")
"""How Safetensors and torch word it."""


class Unwritable(GuardStop):
    """A file of the run cannot be written. Existing files are complete."""


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
    """The stop for a failure of the disk anywhere in a run; None for any other failure."""
    reason = _reason(fault)
    named: Any = getattr(fault, "filename", None)
    inside = isinstance(named, str | Path) and Path(named).absolute().is_relative_to(run_dir.absolute())
    if reason is None or (getattr(fault, "errno", None) in DENIED and not inside):
        return None
    return _stop(Path(named) if inside else run_dir, reason)


def _stop(path: Path, reason: str) -> Unwritable:
    return Unwritable(
        f"{path} cannot be written: {reason}. Earlier files are complete, including the last checkpoint. Free disk space "
        f"or fix the permissions (df -h {path.parent}; ls -ld {path.parent}), then resume from the last checkpoint"
    )


def _reason(fault: BaseException) -> str | None:
    """The system's message for a failed write; None for any other failure."""
    if isinstance(fault, OSError):
        return os.strerror(fault.errno) if fault.errno in (*FULL, *DENIED) else None
    found = TEXTS.search(str(fault))
    if found is None:
        return None
    if found[1] is None:
        return "the disk takes no more, or the folder may not be written"
    return os.strerror(int(found[1])) if int(found[1]) in (*FULL, *DENIED) else None
