"""What a worker asks of the kernel, on a ladder of levels; each level reports what it does not isolate.

`namespaces`: the worker's candidates live in user, pid, mount, network, ipc and uts namespaces of their own: they see
no other process, no network, an empty /proc, a read-only file system and one small private directory; the pid
namespace's end kills whatever they started. Works as root and as an ordinary user where user namespaces are allowed.
`user`: root without them; candidates run as an unused user id per worker.
`process`: an ordinary user without them; candidates share the user id of the run.

On every level each candidate has limits, no capabilities and a filter of system calls. Not isolated on any level: what
the files say that everybody on the machine may read, the clock, the load that others cause. Standard library only.
"""

import os
import resource
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

from rlvr_exp.sandbox import kernel, view
from rlvr_exp.sandbox.filter import Filter
from rlvr_exp.sandbox.kernel import Refused

LEVELS = ("strict", "namespaces", "user", "process")
"""Strongest first."""
AUTO = LEVELS[1:]
"""The levels tried where none is named: strict costs time for every candidate, and is taken where it is asked for."""
OPEN_AT = {
    "strict": "everything is isolated",
    "namespaces": "candidates of one worker share its namespaces",
    "user": "candidates share the machine's file system and process table",
    "process": "candidates share the user id, the file system and the process table of the run",
}

_ALL_NAMESPACES = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
_NESTABLE = ("user", "pid", "net", "mnt", "ipc", "uts")
_SIGKILL = 9
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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
    if level == "strict":
        raise Refused("not built yet")
    if level == "namespaces":
        uid = _spare_id() if root else None
        _own_namespaces(uid)
        return Jail(level, uid, processes)
    if level == "user" and not root:
        raise Refused("only root can give candidates another user id")
    jail = Jail(level, _spare_id() if level == "user" else None, processes)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    jail.facts["network"] = root and _try(kernel.unshare, kernel.NEWNET)
    jail.scratch = tempfile.mkdtemp(prefix="rlvr-sandbox-")
    os.chmod(jail.scratch, 0o711)
    return jail


def settle(jail: Jail) -> None:
    """In the zygote: mounts, protection from candidates, adoption of orphans. Raises Refused."""
    kernel.prctl(kernel.PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    jail.base_bytes = _address_space()
    # When memory runs out, the kernel should take a candidate and not the trainer.
    _try(_write, "/proc/self/oom_score_adj", "1000")
    jail.facts["system_calls"] = _compile_filter(jail)
    if jail.level == "namespaces":
        jail.scratch = view.mount_point()
        jail.facts |= {"network": True, "processes": True, "ipc": True, "files_hidden": True}
        closed = [_try(_write, f"/proc/sys/user/max_{kind}_namespaces", "0") for kind in _NESTABLE]
        jail.facts["nested_namespaces"] = all(closed) or jail.filter is not None
        jail.facts["files_read_only"] = view.mount_everything(jail.scratch, [_PACKAGE])
    else:
        jail.facts["network"] |= jail.filter is not None
        jail.facts |= {"processes": jail.uid is not None or jail.filter is not None, "ipc": jail.filter is not None}
        jail.facts |= {"files_read_only": False, "files_hidden": False}
        _read(f"/proc/self/task/{os.getpid()}/children")  # without this list no tree could be ended
    jail.facts["user_id"] = jail.uid is not None
    if jail.level != "process":
        view.bring_library(jail.scratch, mounts=jail.level == "namespaces")
    os.umask(0o077)
    kernel.prctl(kernel.DUMPABLE, 0)  # no candidate with the same user id reads or traces the zygote


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _address_space() -> int:
    return int(_read("/proc/self/statm").split()[0]) * resource.getpagesize()


def _compile_filter(jail: Jail) -> bool:
    """A filter that a throw-away fork could install, or none."""
    try:
        jail.filter = Filter(forks=jail.processes > 0)
    except OSError:
        return False
    probe = os.fork()
    if probe == 0:
        try:
            kernel.prctl(kernel.NO_NEW_PRIVS, 1)
            jail.filter.install()
            os._exit(0)
        except (Refused, OSError):
            os._exit(1)
    if os.waitpid(probe, 0)[1] != 0:
        jail.filter = None
    return jail.filter is not None


def _try(call: Callable[..., None], *args: object) -> bool:
    try:
        call(*args)
    except (OSError, Refused):
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
    kernel.drop_capabilities()
    kernel.prctl(kernel.NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PDEATHSIG, _SIGKILL)
    if jail.filter is not None:
        jail.filter.install()


def _tasks(jail: Jail) -> int:
    """Threads count as well. Where the user id is the run's own, whatever else the user runs counts, too."""
    if jail.uid is None and not jail.owns_pids:
        everybody = int(_read("/proc/loadavg").split()[3].partition("/")[2])
        return everybody + 32 + jail.processes
    return 32 + jail.processes if jail.filter is not None else 16


def _spare_id() -> int:
    """A user id that nobody has, one per worker: high in the range that this user namespace knows."""
    rows = [[int(number) for number in line.split()] for line in _read("/proc/self/uid_map").splitlines()]
    first, _, count = max(rows, key=lambda row: row[2])
    top = min(first + count - 1, (1 << 31) - 2)
    if count < 10_000:
        raise Refused("no spare user ids in this container")
    return top - os.getpid() % min(count // 2, 1 << 22)


def _own_namespaces(uid: int | None) -> None:
    mine, group = os.geteuid(), os.getegid()
    finish_maps = _start_map_helper(uid) if uid is not None else None
    try:
        kernel.unshare(_ALL_NAMESPACES)
    except Refused:
        if finish_maps is not None:
            finish_maps(False)
        raise
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


def _start_map_helper(uid: int) -> Callable[[bool], bool]:
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
