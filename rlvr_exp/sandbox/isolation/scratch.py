"""A candidate's own folder: empty at its start, whatever the previous candidate left. Standard library only."""

import fcntl
import os
import stat
import time

from rlvr_exp.sandbox.isolation import kernel

SCRATCH_MB = 64
"""Size of a candidate's folder where it can be bounded; of a single file everywhere."""
_FILES = 4096
_PREFIX, _WASTE = "rlvr-sandbox-", "waste"
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_SLICE_S, _PATIENCE_S = 0.3, 3.0


class Mounted:
    """Its own memory file system, bounded in size and number of files; recreated when it was touched.

    Args:
        path: where it is mounted.
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
    """A folder on the machine's disk, where nothing can be mounted: emptied after each candidate, and not bounded."""

    bounded = False

    def __init__(self, parent: str, name: str, uid: int | None):
        self.path, self._waste = os.path.join(parent, name), os.path.join(parent, _WASTE)
        os.mkdir(self.path, 0o700)
        if uid is not None:
            os.chown(self.path, uid, uid)

    def enter(self) -> None:
        """Nothing to do: it exists."""

    def clean(self) -> None:
        """The folder itself stays, since rules of Landlock refer to it; its content is moved to where the supervisor
        removes it later: a disk can take milliseconds for each of many thousand folders."""
        os.chmod(self.path, 0o700)
        for entry in os.scandir(self.path):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
            os.rename(entry.path, os.path.join(self._waste, os.urandom(12).hex()))
        os.utime(self.path)


def empty(folder: str, until: float) -> None:
    """Remove its content, however deep it nests and whatever its modes, as far as the time suffices. Nobody else may
    work in it."""
    back = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        above: list[tuple[str, list[str]]] = []
        pending = _enter(folder)
        while (pending or above) and time.monotonic() < until:
            if pending:
                name = pending.pop()
                above.append((name, pending))
                pending = _enter(name)
            else:
                os.chdir("..")
                name, pending = above.pop()
                os.rmdir(name)
    finally:
        os.fchdir(back)
        os.close(back)


def _enter(folder: str) -> list[str]:
    """Enter, remove the files, and list the folders."""
    os.chmod(folder, 0o700)
    os.chdir(folder)
    folders = []
    for entry in os.scandir("."):
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            os.unlink(entry.name)
    return folders


def open_to_others(temporary: str) -> str:
    """The temporary folder, or the first usual folder, that another user id may reach. Raises Refused."""
    for path in (temporary, *_PLACES):
        if os.access(path, os.W_OK | os.X_OK) and all(map(_lets_through, _down_to(os.path.realpath(path)))):
            return path
    raise kernel.Refused(f"no temporary folder that another user may reach: {', '.join((temporary, *_PLACES))}")


def _down_to(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) or "/" for count in range(1, len(parts) + 1)]


def _lets_through(folder: str) -> bool:
    return bool(os.stat(folder).st_mode & stat.S_IXOTH)


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
    empty(path, time.monotonic() + _PATIENCE_S)
    if not os.listdir(path):
        os.rmdir(path)


def tidy(parent: str) -> None:
    """A supervisor's idle work: remove files of its candidates and of killed workers."""
    empty(os.path.join(parent, _WASTE), time.monotonic() + _SLICE_S)
    temporary = os.path.dirname(parent)
    for path in [os.path.join(temporary, name) for name in os.listdir(temporary) if name.startswith(_PREFIX)]:
        try:
            if os.lstat(path).st_uid != os.geteuid():
                continue
            lock = _lock(path)
        except OSError:  # in use, or gone meanwhile
            continue
        try:
            empty(path, time.monotonic() + _SLICE_S)
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
