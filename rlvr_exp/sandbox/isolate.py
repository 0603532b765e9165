"""What a worker asks of the kernel, on a ladder of levels; each level reports what it does not isolate.

`namespaces`: the worker's candidates live in user, pid, mount, network, ipc and uts namespaces of their own: they see no
other process, no network, an empty /proc, a read-only file system and one small private directory; the pid namespace's
end kills whatever they started. Works as root and as an ordinary user where the kernel allows user namespaces.
`user`: root without them; candidates run as an unused user id per worker.
`process`: an ordinary user without them; candidates share the user id of the run.

Linux calls go through ctypes, since Python 3.11 has no `unshare`. Standard library only.
"""

import ctypes
import errno
import os
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from rlvr_exp.sandbox.filter import Filter

LEVELS = ("namespaces", "user", "process")

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_ALL_NAMESPACES = _NEWNS | _NEWUTS | _NEWIPC | _NEWUSER | _NEWPID | _NEWNET
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_KILL = 9
_MS_BIND = 0x1000
SCRATCH_MB = 64
_NESTABLE = ("user", "pid", "net", "mnt", "ipc", "uts")
LIBRARY = ".library"
"""Name inside the scratch that is not a candidate's and stays."""
_NEVER_NEEDED = ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3")

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """This level cannot be had here; the pool tries the next one."""


@dataclass
class Jail:
    """How a worker's candidates are held. `uid` is None where they keep the worker's user id."""

    level: str
    uid: int | None
    processes: int
    """How many processes a candidate may start beside its own."""
    facts: dict[str, bool] = field(default_factory=dict)
    scratch: str = ""
    base_bytes: int = 0
    """Address space that a fork begins with; a candidate's limit counts from there."""
    filter: Filter | None = None

    @property
    def owns_pids(self) -> bool:
        """The zygote is the first process of a pid namespace: one kill ends everything else in it."""
        return self.level == "namespaces"


def enter(level: str, processes: int) -> Jail:
    """Take the worker's process to `level`; its next fork is the zygote. Raises Refused."""
    root = os.geteuid() == 0
    if level == "namespaces":
        uid = _spare_id() if root else None
        _own_namespaces(uid)
        return Jail(level, uid, processes)
    if level == "user" and not root:
        raise Refused("only root can give candidates another user id")
    jail = Jail(level, _spare_id() if level == "user" else None, processes)
    jail.facts["network"] = root and _quiet(_libc.unshare, _NEWNET)
    jail.scratch = tempfile.mkdtemp(prefix="rlvr-sandbox-")
    os.chmod(jail.scratch, 0o711)
    return jail


def settle(jail: Jail, hidden: Sequence[str]) -> None:
    """In the zygote: mounts, protection from candidates, adoption of orphans. Raises Refused."""
    prctl(_PR_SET_PDEATHSIG, _KILL)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    jail.base_bytes = _address_space()
    # When memory runs out, the kernel should take a candidate and not the trainer.
    _try_write("/proc/self/oom_score_adj", "1000")
    jail.facts["system_calls"] = _compile_filter(jail)
    if jail.level == "namespaces":
        jail.scratch = _mount_point()
        jail.facts |= {"network": True, "processes": True, "ipc": True, "files_hidden": True}
        jail.facts["nested_namespaces"] = all([_try_write(f"/proc/sys/user/max_{kind}_namespaces", "0") for kind in _NESTABLE])
        jail.facts["files_read_only"] = _mount_everything(jail.scratch, hidden)
    else:
        jail.facts["network"] |= jail.filter is not None
        jail.facts |= {"processes": jail.uid is not None or jail.filter is not None, "ipc": jail.filter is not None}
        jail.facts |= {"files_read_only": False, "files_hidden": False}
        children_of(os.getpid())  # without this list no tree could be ended
    jail.facts["user_id"] = jail.uid is not None
    _bring_library(jail)
    os.umask(0o077)
    prctl(_PR_SET_DUMPABLE, 0)  # no candidate with the same user id reads or traces the zygote


def children_of(pid: int) -> list[int]:
    """The processes that `pid` is the parent of, adopted ones included. Raises OSError without /proc."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as table:
        return [int(word) for word in table.read().split()]


def _address_space() -> int:
    with open("/proc/self/statm", encoding="utf-8") as table:
        return int(table.read().split()[0]) * resource.getpagesize()


def _compile_filter(jail: Jail) -> bool:
    """A filter that a throw-away fork could install, or none."""
    try:
        jail.filter = Filter(forks=jail.processes > 0)
    except OSError:
        return False
    probe = os.fork()
    if probe == 0:
        try:
            prctl(_PR_SET_NO_NEW_PRIVS, 1)
            jail.filter.install()
            os._exit(0)
        except (Refused, OSError):
            os._exit(1)
    if os.waitpid(probe, 0)[1] != 0:
        jail.filter = None
    return jail.filter is not None


def _try_write(path: str, text: str) -> bool:
    try:
        _write(path, text)
    except OSError:
        return False
    return True


def confine(jail: Jail, memory_mb: int, cpu_s: float, file_bytes: int) -> None:
    """In a candidate's fresh fork: limits first, then no way back to any privilege."""
    cpu = int(cpu_s) + 2  # the zygote watches the exact limit; this is the floor below it
    limits = (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, jail.base_bytes + (memory_mb << 20)),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, _tasks(jail)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    )
    for which, value in limits:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
    if jail.uid is not None:
        os.setgroups([])
        os.setresgid(jail.uid, jail.uid, jail.uid)
        os.setresuid(jail.uid, jail.uid, jail.uid)
    _drop_capabilities()
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_PDEATHSIG, _KILL)
    if jail.filter is not None:
        jail.filter.install()


def _tasks(jail: Jail) -> int:
    """Threads count as well. Where the user id is the run's own, whatever else the user runs counts, too."""
    if jail.uid is None and not jail.owns_pids:
        with open("/proc/loadavg", encoding="utf-8") as table:
            everybody = int(table.read().split()[3].partition("/")[2])
        return everybody + 32 + jail.processes
    return 32 + jail.processes if jail.filter is not None else 16


def prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise Refused(f"prctl({option}): {os.strerror(ctypes.get_errno())}")


def _quiet(call: "ctypes._FuncPointer", *args: object) -> bool:
    return call(*args) == 0


def _spare_id() -> int:
    """A user id that nobody has, one per worker: high in the range that this user namespace knows."""
    with open("/proc/self/uid_map", encoding="utf-8") as table:
        rows = [[int(number) for number in line.split()] for line in table]
    first, _, count = max(rows, key=lambda row: row[2])
    top = min(first + count - 1, (1 << 31) - 2)
    if count < 10_000:
        raise Refused("no spare user ids in this container")
    return top - os.getpid() % min(count // 2, 1 << 22)


def _own_namespaces(uid: int | None) -> None:
    mine, group = os.geteuid(), os.getegid()
    finish_maps = _start_map_helper(uid) if uid is not None else None
    if _libc.unshare(_ALL_NAMESPACES) != 0:
        number = ctypes.get_errno()
        if finish_maps is not None:
            finish_maps(False)
        raise Refused(f"unshare: {errno.errorcode.get(number, number)}")
    if finish_maps is not None:
        if not finish_maps(True):
            raise Refused("cannot map a spare user id")
        return
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{mine} {mine} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as fault:
        raise Refused(f"user id map: {fault}") from fault


def _start_map_helper(uid: int):
    """Only a process that stayed outside may map two ids: fork one, which waits until the namespaces are there."""
    target, (read, write) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(write)
        try:
            if os.read(read, 1):
                _write(f"/proc/{target}/uid_map", f"0 0 1\n{uid} {uid} 1")
                _write(f"/proc/{target}/gid_map", f"0 0 1\n{uid} {uid} 1")
            os._exit(0)
        except OSError:
            os._exit(1)
    os.close(read)

    def finish(go: bool) -> bool:
        if go:
            os.write(write, b"1")
        os.close(write)
        return os.waitpid(helper, 0)[1] == 0

    return finish


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _mount_point() -> str:
    """An existing folder that candidates can do without: the scratch is mounted over it, so nothing is left behind."""
    library = os.path.dirname(os.__file__)
    for place in (tempfile.gettempdir(), "/var/tmp", "/mnt"):
        if os.path.isdir(place) and not library.startswith(place + "/"):
            return place
    raise Refused("no folder to mount the scratch on")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> bool:
    encoded = [part.encode() if part is not None else None for part in (source, target, kind)]
    return _libc.mount(*encoded, ctypes.c_ulong(flags), options.encode()) == 0


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _mount_everything(scratch: str, hidden: Sequence[str]) -> bool:
    """Everything read-only, a small writable scratch, /proc, /sys and the hidden folders empty."""
    if not _mount("none", "/", None, _MS_REC | _MS_PRIVATE):
        raise Refused(f"mount: {os.strerror(ctypes.get_errno())}")
    attributes = _MountAttributes(set=_MS_RDONLY | _MS_NOSUID)
    read_only = _libc.syscall(
        _SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, ctypes.byref(attributes), ctypes.sizeof(attributes)
    )
    safe = _MS_NOSUID | _MS_NODEV
    if not _mount("tmpfs", scratch, "tmpfs", safe, f"size={SCRATCH_MB}m,nr_inodes=4096,mode=711"):
        raise Refused(f"mount tmpfs: {os.strerror(ctypes.get_errno())}")
    for folder in ("/proc", "/sys", *hidden):
        if os.path.isdir(folder) and not _mount("tmpfs", folder, "tmpfs", safe | _MS_RDONLY, "size=4k,mode=755"):
            raise Refused(f"hiding {folder}: {os.strerror(ctypes.get_errno())}")
    return read_only == 0


def _bring_library(jail: Jail) -> None:
    """An interpreter under a private home folder is closed to another user id: put its library into the scratch."""
    library = os.path.dirname(os.__file__)
    if jail.level == "process" or _open_to_all(library):
        return
    place = os.path.join(jail.scratch, LIBRARY)
    os.mkdir(place, 0o755)
    if jail.level == "user":
        shutil.copytree(library, place, ignore=shutil.ignore_patterns(*_NEVER_NEEDED), dirs_exist_ok=True)
    elif not _mount(library, place, None, _MS_BIND):
        raise Refused(f"binding {library}: {os.strerror(ctypes.get_errno())}")
    sys.path[:] = _moved(sys.path, library, place)
    for module in list(sys.modules.values()):
        if type(getattr(module, "__path__", None)) is list:
            module.__path__ = _moved(module.__path__, library, place)
    sys.path_importer_cache.clear()


def _moved(paths: Sequence[str], old: str, new: str) -> list[str]:
    return [new + path.removeprefix(old) for path in paths if path.startswith(old)]


def _open_to_all(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def _drop_capabilities() -> None:
    header, none = _CapHeader(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if _libc.capset(ctypes.byref(header), none) != 0:
        raise Refused(f"capset: {os.strerror(ctypes.get_errno())}")
