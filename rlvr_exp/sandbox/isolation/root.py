"""The files of the machine that a candidate needs, and a root built of these alone. Standard library only.

Visible are the interpreter's library, the system's shared libraries, time zones and five devices; the installed
packages and a shell only on request. Never: the project, wherever it is installed.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.sandbox.isolation import kernel

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
PLACES = ("/scratch/own", "/scratch/pair")
"""Parents of a candidate's own folder in the new root, and of the folder that a pair shares."""
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime")
_PROJECT = "rlvr_exp"
_EMPTY = "/empty"
_shown: list[str] = []


@dataclass(frozen=True)
class View:
    """Visible paths, none below another, and folders and files below them to show empty."""

    shown: tuple[str, ...]
    masked: tuple[str, ...]


def show(path: str) -> None:
    """Called by a harness while it is imported, before the worker seals its root: a program that candidates need."""
    _shown.append(path)


def needed(packages: Sequence[str], processes: int) -> View:
    """Called once the harness is loaded: the files that it has mapped are needed as well."""
    prefix = () if sys.base_prefix == "/usr" else (f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib64")
    wanted = [*_SYSTEM, *prefix, os.path.dirname(os.__file__), *packages, *_shown, *_mapped()]
    if processes:
        wanted += [interpreter(), "/bin/sh", "/usr/bin/sh"]
    wanted = [path for path in dict.fromkeys(wanted) if os.path.exists(path)]
    shown = [path for path in wanted if not any(path != other and _within(path, other) for other in wanted)]
    libraries = [path for path in wanted if os.path.isdir(path) and not os.path.islink(path)]
    libraries += [path for parent in libraries for path in _starting(parent, "python3")]
    found = [f"{path}/{place}" for path in dict.fromkeys(libraries) for place in ("site-packages", "dist-packages")]
    masked = [path for path in found if not any(_within(package, path) for package in packages)]
    masked += [f"{folder}/{name}" for folder in packages for name in os.listdir(folder) if _of_project(name)]
    return View(tuple(shown), tuple(path for path in dict.fromkeys(masked) if os.path.exists(path)))


def interpreter() -> str:
    """The real program behind `sys.executable`, which may be a link inside the project."""
    return os.path.realpath(sys.executable)


def pieces(view: View) -> tuple[list[str], list[str]]:
    """The same for rules without exceptions: completely visible paths, and folders of which only names are visible."""
    whole, named = [], []
    ahead = list(view.shown)
    while ahead:
        path = ahead.pop()
        if not any(_within(mask, path) for mask in view.masked):
            whole.append(path)
        elif path not in view.masked:
            named.append(path)
            ahead += [os.path.join(path, entry) for entry in os.listdir(path)]
    return whole, named


def build(view: View) -> bool:
    """Enter the new root, within an own mount namespace. Whether all of it is read-only. Raises Refused."""
    kernel.mount("none", "/", None, kernel.REC | kernel.PRIVATE)
    paths = (*view.shown, *DEVICES)
    files = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths}
    base = _place_for(paths)
    kernel.mount("tmpfs", base, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=1m,nr_inodes=4096,mode=755")
    for place in PLACES:
        os.makedirs(f"{base}{place}/tmp")
    if not any(_within(path, "/tmp") for path in paths):  # an environment there may have its own folder of that name
        os.symlink(f"{PLACES[0]}/tmp", f"{base}/tmp")
    mounted = [path for path in view.shown if _show(path, files[path], base, view)]
    for path in DEVICES:
        _make_file(base + path)
    _mask(base, view.masked)
    read_only = _read_only(base, [*mounted, *view.masked, ""])
    for path in DEVICES:
        kernel.mount(f"/proc/self/fd/{files[path]}", base + path, None, kernel.BIND)
    for file in files.values():
        os.close(file)
    kernel.change_root(base)
    return read_only


def _place_for(paths: Sequence[str]) -> str:
    """The place where the new root is built: a folder that hides none of the paths while it is covered."""
    places = [place for place in ("/tmp", "/mnt", "/var/tmp", "/media", "/srv", "/opt") if os.path.isdir(place)]
    free = [place for place in places if not any(_within(path, place) for path in paths)]
    if not free:
        raise kernel.Refused("no folder to put a root together in")
    return free[0]


def _mask(base: str, masked: Sequence[str]) -> None:
    _make_file(base + _EMPTY)
    for path in masked:
        if os.path.isdir(base + path):
            kernel.mount("tmpfs", base + path, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=4k,mode=755")
        else:
            kernel.mount(base + _EMPTY, base + path, None, kernel.BIND)
    os.unlink(base + _EMPTY)


def _show(path: str, file: int, base: str, view: View) -> bool:
    """Mount a path; whether it was mounted: a link to a visible path stays a link."""
    target = base + path
    if os.path.islink(path) and any(_within(os.path.realpath(path), other) for other in view.shown if other != path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.path.realpath(path), target)
        return False
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        _make_file(target)
    kernel.mount(f"/proc/self/fd/{file}", target, None, kernel.BIND | kernel.REC)
    return True


def _read_only(base: str, mounts: Sequence[str]) -> bool:
    try:
        kernel.make_read_only(base)
    except kernel.Refused:
        try:
            for path in mounts:
                kernel.remount_read_only(base + path)
        except kernel.Refused:
            return False
    return True


def _make_file(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _starting(folder: str, start: str) -> list[str]:
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(start)]


def _of_project(name: str) -> bool:
    """Paths of the project: its package, an installer's metadata, a file that leads to it, files of runs."""
    return _PROJECT in name.replace("-", "_")


def _mapped() -> list[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").partition("/")[2] for line in file if "/" in line}
    return sorted("/" + path for path in paths if ".so" in os.path.basename(path) and not path.endswith(" (deleted)"))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
