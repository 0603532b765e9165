"""A full disk or a folder without write permission: one clear error in place of a traceback.

Every file of a run is written under a temporary name and renamed, so that the previous file stays complete; this module
only words the failure. Libraries that write weights report it in texts of their own, which are recognised here.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import GuardStop

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
