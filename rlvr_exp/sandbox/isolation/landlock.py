"""Landlock: the files that a process may still open, without any privilege and on every level. Standard library only.

A rule set is created once in the zygote and applied by each fork, in its own domain: it also keeps the fork's signals
and abstract sockets inside, and denies TCP, where the kernel supports that.
"""

import ctypes
import errno
import os
import stat
import struct

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_QUIET = 1
"""LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF: no audit records of candidates' attempts."""
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _DEVICE = 1, 2, 4, 8, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE
LOOK, LIST = _READ | _READ_DIR | _EXECUTE, _READ_DIR
"""Rights below a folder: read and run everything; see its names."""
TRUNCATES, SCOPES = 3, 6
"""Versions that deny truncating, and that keep signals in."""

_syscall = ctypes.CDLL(None, use_errno=True).syscall


def version() -> int:
    """Landlock's version; 0: the kernel has none, or disables it."""
    return max(0, _syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


class Rules:
    """A rule set. Everything is denied but what `allow` names. Raises OSError."""

    def __init__(self) -> None:
        abi = version()
        if not abi:
            raise OSError(errno.EOPNOTSUPP, "no Landlock")
        self.abi = abi
        files = (1 << (13 + (abi >= 2) + (abi >= TRUNCATES) + (abi >= 5))) - 1
        attributes = struct.pack("=QQQ", files, 3, 3)[: 24 if abi >= SCOPES else 16 if abi >= 4 else 8]
        self._all = files
        self._fd = _checked(_syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
        self._flags = _QUIET if abi >= 7 else 0

    def allow(self, path: str, rights: int | None = None) -> None:
        """Allow `rights` beneath `path`; None: all but running files. A missing path is skipped."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            return
        try:
            wanted = (self._all & ~_EXECUTE if rights is None else rights) & self._all
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                wanted &= _OF_FILES
            _checked(_syscall(_ADD, self._fd, _BENEATH, struct.pack("=Qi", wanted, fd), 0))
        finally:
            os.close(fd)

    def take_on(self) -> None:
        """Apply it to this process and its descendants, permanently; needs no_new_privs."""
        _checked(_syscall(_RESTRICT, self._fd, self._flags))


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return returned
