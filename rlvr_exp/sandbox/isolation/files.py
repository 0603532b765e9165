"""The files that a candidate sees: a root that holds only what it needs, and a folder of its own.

The root shows the interpreter's library, the system's shared libraries, time zones and five devices; the installed
packages and a shell only on request. It never shows the project, wherever that is installed. A candidate's folder is
empty at its start, whatever the previous candidate left. Standard library only.
"""

import fcntl
import os
import stat
import sys
import time
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
    """Add a program that candidates need. A harness calls this while it is imported, before the root is sealed."""
    _shown.append(path)


def needed(packages: Sequence[str], processes: int) -> View:
    """The view for a loaded harness: the libraries that it has mapped are needed as well."""
    prefix = () if sys.base_prefix == "/usr" else (f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib64")
    wanted = [*_SYSTEM, *prefix, os.path.dirname(os.__file__), *packages, *_shown, *_mapped_libraries()]
    if processes:
        wanted += [interpreter(), "/bin/sh", "/usr/bin/sh"]
    wanted = [path for path in dict.fromkeys(wanted) if os.path.exists(path)]
    shown = [path for path in wanted if not any(path != other and _within(path, other) for other in wanted)]
    libraries = [path for path in wanted if os.path.isdir(path) and not os.path.islink(path)]
    libraries += [f"{path}/{name}" for path in libraries for name in os.listdir(path) if name.startswith("python3")]
    found = [f"{path}/{place}" for path in dict.fromkeys(libraries) for place in ("site-packages", "dist-packages")]
    masked = [path for path in found if not any(_within(package, path) for package in packages)]
    # The project's package, an installer's metadata, a file that leads to it, files of runs.
    masked += [
        f"{folder}/{name}" for folder in packages for name in os.listdir(folder) if _PROJECT in name.replace("-", "_")
    ]
    return View(tuple(shown), tuple(path for path in dict.fromkeys(masked) if os.path.exists(path)))


def interpreter() -> str:
    """The real program behind `sys.executable`, which may be a link inside the project."""
    return os.path.realpath(sys.executable)


def pieces(view: View) -> tuple[list[str], list[str]]:
    """The view for rules without exceptions: completely visible paths, and folders that show only names."""
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


def build_root(view: View) -> bool:
    """Enter the new root, within an own mount namespace. Return whether all of it is read-only. Raises Refused."""
    kernel.mount("none", "/", None, kernel.REC | kernel.PRIVATE)
    paths = (*view.shown, *DEVICES)
    files = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths}
    base = _place_for(paths)
    kernel.mount("tmpfs", base, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=1m,nr_inodes=4096,mode=755")
    for place in PLACES:
        os.makedirs(f"{base}{place}/tmp")
    if not any(_within(path, "/tmp") for path in paths):  # an environment there may have its own folder of that name
        os.symlink(f"{PLACES[0]}/tmp", f"{base}/tmp")
    mounted = [path for path in view.shown if _mount_path(path, files[path], base, view)]
    for path in (*DEVICES, _EMPTY):
        _make_file(base + path)
    for path in view.masked:
        if os.path.isdir(base + path):
            kernel.mount("tmpfs", base + path, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=4k,mode=755")
        else:
            kernel.mount(base + _EMPTY, base + path, None, kernel.BIND)
    os.unlink(base + _EMPTY)
    read_only = _make_read_only(base, [*mounted, *view.masked, ""])
    for path in DEVICES:
        kernel.mount(f"/proc/self/fd/{files[path]}", base + path, None, kernel.BIND)
    for file in files.values():
        os.close(file)
    kernel.change_root(base)
    return read_only


def _place_for(paths: Sequence[str]) -> str:
    """A folder to build the new root in: while it is covered, it hides none of the paths."""
    places = [place for place in ("/tmp", "/mnt", "/var/tmp", "/media", "/srv", "/opt") if os.path.isdir(place)]
    free = [place for place in places if not any(_within(path, place) for path in paths)]
    if not free:
        raise kernel.Refused("no folder to put a root together in")
    return free[0]


def _mount_path(path: str, file: int, base: str, view: View) -> bool:
    """Mount a path. False if it is a link to a visible path: it stays a link."""
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


def _make_read_only(base: str, mounts: Sequence[str]) -> bool:
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


def _mapped_libraries() -> list[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").partition("/")[2] for line in file if "/" in line}
    return sorted("/" + path for path in paths if ".so" in os.path.basename(path) and not path.endswith(" (deleted)"))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


SCRATCH_MB = 64
"""Size of a candidate's folder, if it can be bounded; of a single file everywhere."""
_FILES = 4096
_PREFIX, _WASTE = "rlvr-sandbox-", "waste"
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_SLICE_S, _PATIENCE_S = 0.3, 3.0


class Mounted:
    """A candidate's folder as a memory file system, bounded in size and number of files; recreated after any change.

    Args:
        path: the mount point.
        uid: its owner, as this user namespace knows it.
        each: every candidate mounts it for itself, in its own mount namespace.
    """

    bounded = True

    def __init__(self, path: str, uid: int, each: bool):
        self.path, self._each = path, each
        self._options = f"size={SCRATCH_MB}m,nr_inodes={_FILES},mode=700,uid={uid},gid={uid}"
        if not each:
            self._mount()
            self._untouched = self._state()

    def enter(self) -> None:
        """Mount it in the candidate's fork, while that may still mount."""
        if self._each:
            self._mount()

    def clean(self) -> None:
        """Empty it after the candidate's end. Any change to the folder or in it changes its size, times or mode."""
        if not self._each and self._state() != self._untouched:
            kernel.unmount(self.path)
            self._mount()
            self._untouched = self._state()

    def _mount(self) -> None:
        kernel.mount("tmpfs", self.path, "tmpfs", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC, self._options)

    def _state(self) -> tuple[int, ...]:
        at = os.stat(self.path)
        return (at.st_mode, at.st_uid, at.st_nlink, at.st_size, at.st_atime_ns, at.st_mtime_ns, at.st_ctime_ns)


class Folder:
    """A candidate's folder on the machine's disk, for machines that allow no mounts: emptied after each one, not bounded."""

    bounded = False

    def __init__(self, parent: str, name: str, uid: int | None):
        self.path, self._waste = os.path.join(parent, name), os.path.join(parent, _WASTE)
        os.mkdir(self.path, 0o700)
        if uid is not None:
            os.chown(self.path, uid, uid)

    def enter(self) -> None:
        """Nothing to do: it exists."""

    def clean(self) -> None:
        """Move its content to a folder that the supervisor empties later: a disk can take milliseconds for each of many
        thousand folders. The folder itself stays, since rules of Landlock refer to it."""
        os.chmod(self.path, 0o700)
        for entry in os.scandir(self.path):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
            os.rename(entry.path, os.path.join(self._waste, os.urandom(12).hex()))
        os.utime(self.path)


def open_to_others(temporary: str) -> str:
    """The temporary folder, or the first usual folder, that another user id may reach. Raises Refused."""
    for path in (temporary, *_PLACES):
        if os.access(path, os.W_OK | os.X_OK) and open_to_all(os.path.realpath(path)):
            return path
    raise kernel.Refused(f"no temporary folder that another user may reach: {', '.join((temporary, *_PLACES))}")


def open_to_all(path: str) -> bool:
    """Whether every user id may enter the path and all folders above it."""
    while os.stat(path).st_mode & stat.S_IXOTH:
        if path == "/":
            return True
        path = os.path.dirname(path)
    return False


def make_parent(temporary: str) -> tuple[str, int]:
    """A new folder for a worker's scratch, below `temporary`, and the lock that marks it as in use."""
    while True:
        path = os.path.join(temporary, _PREFIX + os.urandom(8).hex())
        os.mkdir(path, 0o700)
        try:
            lock = _lock(path)
            os.chmod(path, 0o711)
            os.mkdir(os.path.join(path, _WASTE), 0o700)
            return path, lock
        except (FileNotFoundError, BlockingIOError):  # another worker took it for an orphan
            continue


def remove_parent(path: str) -> None:
    """Remove it at a worker's end. Content that would take too long stays for another worker's supervisor."""
    _empty(path, time.monotonic() + _PATIENCE_S)
    if not os.listdir(path):
        os.rmdir(path)


def tidy(parent: str) -> None:
    """Remove files of a supervisor's candidates and of killed workers; done while it is idle."""
    _empty(os.path.join(parent, _WASTE), time.monotonic() + _SLICE_S)
    temporary = os.path.dirname(parent)
    for path in [os.path.join(temporary, name) for name in os.listdir(temporary) if name.startswith(_PREFIX)]:
        try:
            if os.lstat(path).st_uid != os.geteuid():
                continue
            lock = _lock(path)
        except OSError:  # in use, or gone meanwhile
            continue
        try:
            _empty(path, time.monotonic() + _SLICE_S)
            os.rmdir(path)
        except OSError:  # not empty yet, or another worker removes it
            pass
        finally:
            os.close(lock)


def _lock(path: str) -> int:
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _empty(folder: str, until: float) -> None:
    """Remove a folder's content, however deep it nests and whatever its modes, until the time is up. Nobody else may
    work in it."""
    back = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        above: list[tuple[str, list[str]]] = []
        pending = _enter_and_unlink(folder)
        while (pending or above) and time.monotonic() < until:
            if pending:
                name = pending.pop()
                above.append((name, pending))
                pending = _enter_and_unlink(name)
            else:
                os.chdir("..")
                name, pending = above.pop()
                os.rmdir(name)
    finally:
        os.fchdir(back)
        os.close(back)


def _enter_and_unlink(folder: str) -> list[str]:
    """Enter a folder, remove its files, and list its folders."""
    os.chmod(folder, 0o700)
    os.chdir(folder)
    folders = []
    for entry in os.scandir("."):
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            os.unlink(entry.name)
    return folders
