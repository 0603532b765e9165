"""The few Linux calls that Python 3.11 lacks, through ctypes. Each raises Refused with the kernel's reason.

`FileRules` are Landlock: the files that a process may still open, without any privilege and on every level. A rule set
is created once in the zygote and applied by each fork, in its own domain: it also keeps the fork's signals and abstract
sockets inside, and denies TCP, if the kernel supports that. It raises OSError. Standard library only.
"""

import ctypes
import errno
import mmap
import os
import stat
import struct

PDEATHSIG, DUMPABLE, CHILD_SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
"""Options of prctl."""
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
"""Namespaces."""
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, MOVE, REC, PRIVATE = 1, 2, 4, 8, 0x20, 0x1000, 0x2000, 0x4000, 0x40000
"""Flags of mount."""
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CLONE_VM, _SIGCHLD = 0x100, 17
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _DETACH = 442, -100, 0x8000, 2
_KEPT_FLAGS = NOEXEC | 0x400 | 0x800 | 0x200000
"""noexec and the kinds of noatime: a mount from outside keeps them."""
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_fork = ctypes.PyDLL(None, use_errno=True).fork
_prctl, _unshare, _mount, _umount2, _capset, _setns = (
    _libc[name] for name in ("prctl", "unshare", "mount", "umount2", "capset", "setns")
)
"""Looked up here, to save it in forks."""


class Refused(Exception):
    """This level is not available here; the pool tries the next level."""


def fork() -> int:
    """`os.fork` without Python's hooks for a child. These reset locks that other threads may hold and reseed generators
    that a fork must not share, module by module, and cost as much as the fork; a process with one thread needs none of
    them. Seeded state stays seeded."""
    child = _fork()
    _check(min(child, 0), "fork")
    return child


def prctl(option: int, value: int) -> None:
    _check(_prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def unshare(namespaces: int) -> None:
    _check(_unshare(namespaces), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = [part.encode() if part is not None else None for part in (source, target, kind)]
    _check(_mount(*encoded, ctypes.c_ulong(flags), options.encode()), f"mount on {target}")


def unmount(target: str) -> None:
    """Unmount at once for all; its memory is freed with the last user."""
    _check(_umount2(target.encode(), _DETACH), f"unmount of {target}")


def change_root(target: str) -> None:
    """The mount at `target` becomes the root, and the old root leaves the namespace."""
    os.chdir(target)
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is not None and _libc.syscall(number, b".", b".") == 0:
        unmount(".")
    else:  # the root of an initial memory file system cannot be moved: it is covered
        mount(".", "/", None, MOVE)
        os.chroot(".")
    os.chdir("/")


def start_guard(stack: mmap.mmap) -> None:
    """A child that only waits to be killed. It shares this process's memory except `stack`, so that it costs little."""
    top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + len(stack)
    child = _libc.clone(_libc.pause, ctypes.c_void_p(top), _CLONE_VM | _SIGCHLD, None)
    _check(min(child, 0), "clone")


def join(namespace: int, kind: int) -> None:
    """Enter the namespace behind a descriptor."""
    _check(_setns(namespace, kind), "setns")


def remount_read_only(target: str) -> None:
    """Make a single mount read-only, on kernels that cannot do it for all mounts below."""
    kept = os.statvfs(target).f_flag & _KEPT_FLAGS
    mount("none", target, None, REMOUNT | BIND | RDONLY | NOSUID | NODEV | kept)


def make_read_only(target: str) -> None:
    """Make the mount at `target` and every mount below it read-only. Needs Linux 5.12."""
    wanted = _MountAttributes(set=RDONLY | NOSUID | NODEV)
    pointer, size = ctypes.byref(wanted), ctypes.sizeof(wanted)
    done = _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, pointer, size)
    _check(done, f"making {target} read-only")


def drop_capabilities() -> None:
    """Drop all capabilities of this thread, permanently."""
    _check(_capset(_OWN_CAPABILITIES, _NO_CAPABILITIES), "capset")


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


# Built once: a fork touches as little as possible.
_OWN_CAPABILITIES = ctypes.byref(_CapHeader(_CAPABILITY_VERSION, 0))
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()


def _check(returned: int, what: str) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise Refused(f"{what}: {errno.errorcode.get(number, number)}, {os.strerror(number)}")


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_QUIET = 1
"""LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF: no audit records of candidates' attempts."""
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _DEVICE = 1, 2, 4, 8, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE
LOOK, LIST = _READ | _READ_DIR | _EXECUTE, _READ_DIR
"""Rights below a folder: to read and run everything; to see its names."""
TRUNCATES, SCOPES = 3, 6
"""Versions of Landlock that deny truncating, and that keep signals in."""


def landlock_version() -> int:
    """0: the kernel has no Landlock, or disables it."""
    return max(0, _libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


class FileRules:
    """A rule set. It denies every path that `allow` does not name. Raises OSError."""

    def __init__(self) -> None:
        abi = landlock_version()
        if not abi:
            raise OSError(errno.EOPNOTSUPP, "no Landlock")
        self.abi = abi
        files = (1 << (13 + (abi >= 2) + (abi >= TRUNCATES) + (abi >= 5))) - 1
        attributes = struct.pack("=QQQ", files, 3, 3)[: 24 if abi >= SCOPES else 16 if abi >= 4 else 8]
        self._all = files
        self._fd = _checked(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
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
            _checked(_libc.syscall(_ADD, self._fd, _BENEATH, struct.pack("=Qi", wanted, fd), 0))
        finally:
            os.close(fd)

    def take_on(self) -> None:
        """Apply it to this process and its descendants, permanently; needs no_new_privs."""
        _checked(_libc.syscall(_RESTRICT, self._fd, self._flags))


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return returned
