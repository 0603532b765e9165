"""What a candidate sees of the file system, on the level that has a mount namespace: almost nothing it can write.

Everything is read-only but a small scratch in memory; /proc, /sys and the hidden folders are empty. An interpreter that
stands under a private home folder is made reachable for the candidates' user id. Standard library only.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence

from rlvr_exp.sandbox import kernel

SCRATCH_MB = 64
LIBRARY = ".library"
"""Name inside the scratch that is not a candidate's and stays."""
_NEVER_NEEDED = ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3")


def mount_point() -> str:
    """An existing folder that candidates can do without: the scratch is mounted over it, so nothing is left behind."""
    library = os.path.dirname(os.__file__)
    for place in (tempfile.gettempdir(), "/var/tmp", "/mnt"):
        if os.path.isdir(place) and not library.startswith(place + "/"):
            return place
    raise kernel.Refused("no folder to mount the scratch on")


def mount_everything(scratch: str, hidden: Sequence[str]) -> bool:
    """Whether the rest is read-only: an older kernel cannot do that. Raises Refused where it does not mount at all."""
    kernel.mount("none", "/", None, kernel.REC | kernel.PRIVATE)
    try:
        kernel.make_read_only("/")
        read_only = True
    except kernel.Refused:
        read_only = False
    safe = kernel.NOSUID | kernel.NODEV
    kernel.mount("tmpfs", scratch, "tmpfs", safe, f"size={SCRATCH_MB}m,nr_inodes=4096,mode=711")
    for folder in ("/proc", "/sys", *hidden):
        if os.path.isdir(folder):
            kernel.mount("tmpfs", folder, "tmpfs", safe | kernel.RDONLY, "size=4k,mode=755")
    return read_only


def bring_library(scratch: str, mounts: bool) -> None:
    """Make the standard library reachable for another user id, through the scratch: mounted there, or else copied."""
    library = os.path.dirname(os.__file__)
    if _open_to_all(library):
        return
    place = os.path.join(scratch, LIBRARY)
    os.mkdir(place, 0o755)
    if mounts:
        kernel.mount(library, place, None, kernel.BIND | kernel.REC)  # REC: what is hidden below stays hidden
    else:
        shutil.copytree(library, place, ignore=shutil.ignore_patterns(*_NEVER_NEEDED), dirs_exist_ok=True)
    sys.path[:] = _moved(sys.path, library, place)
    for module in list(sys.modules.values()):
        if type(getattr(module, "__path__", None)) is list:
            module.__path__ = _moved(module.__path__, library, place)
    sys.path_importer_cache.clear()


def _moved(paths: Sequence[str], old: str, new: str) -> list[str]:
    return [new + path.removeprefix(old) if path.startswith(old) else path for path in paths]


def _open_to_all(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True
