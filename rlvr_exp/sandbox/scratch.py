"""A candidate's own folder: empty at its start, whatever the one before it left. Standard library only."""

import fcntl
import glob
import os
import tempfile

from rlvr_exp.sandbox import kernel

_SIZE_MB, _FILES = 64, 4096
_PREFIX = "rlvr-sandbox-"


class Mounted:
    """A memory file system of its own, bounded in size and number of files; made anew when it was touched.

    Args:
        path: where it is mounted.
        uid: its owner, as this user namespace knows it.
        each: every candidate mounts it for itself, in a mount namespace of its own.
    """

    bounded = True

    def __init__(self, path: str, uid: int, each: bool):
        self.path, self._each = path, each
        self._options = f"size={_SIZE_MB}m,nr_inodes={_FILES},mode=700,uid={uid},gid={uid}"
        if not each:
            self._mount()
            self._untouched = self._state()

    def enter(self) -> None:
        """In the candidate's fork, while it may still mount."""
        if self._each:
            self._mount()

    def clean(self) -> None:
        """After the candidate's end. Whatever is done to the folder or in it changes its size, times or mode."""
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

    def __init__(self, parent: str, uid: int | None):
        self.path, self._uid = os.path.join(parent, "work"), uid
        self._make()

    def enter(self) -> None:
        """Nothing to do: it is there."""

    def clean(self) -> None:
        empty(self.path)
        os.rmdir(self.path)
        self._make()

    def _make(self) -> None:
        os.mkdir(self.path, 0o700)
        if self._uid is not None:
            os.chown(self.path, self._uid, self._uid)


def empty(folder: str) -> None:
    """Remove all in it, however deep it nests and whatever its modes: every level is moved up before it is removed."""
    os.chmod(folder, 0o700)
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in list(os.scandir(entry.path)):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)
                os.rename(inner.path, os.path.join(folder, os.urandom(12).hex()))
            os.rmdir(entry.path)


def make_parent() -> tuple[str, int]:
    """A new folder for a worker's scratch, and the lock that says it is in use."""
    _remove_orphans()
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX)
        try:
            lock = _lock(path)
            os.chmod(path, 0o711)
            tempfile.tempdir = None  # remembered, and not what candidates may write
            return path, lock
        except (FileNotFoundError, BlockingIOError):  # another worker took it for an orphan
            continue


def remove_parent(path: str) -> None:
    empty(path)
    os.rmdir(path)


def _remove_orphans() -> None:
    """What workers left that were killed: theirs is the folder without a lock."""
    for path in glob.glob(os.path.join(tempfile.gettempdir(), _PREFIX + "*")):
        try:
            if os.lstat(path).st_uid != os.geteuid():
                continue
            lock = _lock(path)
        except OSError:  # in use, or gone meanwhile
            continue
        try:
            remove_parent(path)
        except OSError:  # another worker is at it
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
