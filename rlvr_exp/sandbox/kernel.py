"""The few Linux calls that Python 3.11 lacks, through ctypes. Each raises Refused with the kernel's reason."""

import ctypes
import errno
import os

PDEATHSIG, DUMPABLE, CHILD_SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
"""Options of prctl."""
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
"""Namespaces."""
RDONLY, NOSUID, NODEV, BIND, REC, PRIVATE = 1, 2, 4, 0x1000, 0x4000, 0x40000
"""Flags of mount."""
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """This level cannot be had here; the pool tries the next one."""


def prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def unshare(namespaces: int) -> None:
    _check(_libc.unshare(namespaces), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = [part.encode() if part is not None else None for part in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), options.encode()), f"mount on {target}")


def make_read_only(target: str) -> None:
    """The mount at `target` and every mount below it. Needs Linux 5.12."""
    wanted = _MountAttributes(set=RDONLY | NOSUID)
    pointer, size = ctypes.byref(wanted), ctypes.sizeof(wanted)
    done = _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, pointer, size)
    _check(done, f"making {target} read-only")


def drop_capabilities() -> None:
    """All of this thread's, for good."""
    header, none = _CapHeader(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), none), "capset")


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def _check(returned: int, what: str) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise Refused(f"{what}: {errno.errorcode.get(number, number)}, {os.strerror(number)}")
