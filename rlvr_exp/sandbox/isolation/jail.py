"""The isolation of a worker by the kernel, in several levels; each level reports its gaps.

`strict`: like `namespaces`, and each candidate has its own user, pid, mount, network, ipc and uts namespaces.
`namespaces`: the worker's candidates, one after another, share such namespaces: a root of little more than
the interpreter, read-only; no network, no other process, no /proc; the pid namespace's end kills whatever they started.
Works as root and as an ordinary user if user namespaces are allowed.
`user`: root without them; candidates run as an unused user id per worker.
`process`: without even that; candidates share the user id of the run.

On every level each candidate has limits, no capabilities, an allow-list of system calls and, if the kernel has it,
Landlock: files outside the list of `files` cannot be opened, signals and sockets do not leave.

`enter` and `settle` set the isolation up, once for a worker. `confine` drops the privileges of a candidate's fresh fork,
step by step and irreversibly. Memory is bounded by a process's private writable memory (RLIMIT_DATA), and by its
address space. That has extra room for libraries of installed packages: they are mapped, not held. Standard library only.
"""

import _thread
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rlvr_exp.sandbox.isolation import files, kernel
from rlvr_exp.sandbox.isolation.files import SCRATCH_MB, Folder, Mounted
from rlvr_exp.sandbox.isolation.filter import Filter
from rlvr_exp.sandbox.isolation.kernel import FileRules, Refused
from rlvr_exp.sandbox.isolation.process_tree import Processes

LEVELS = ("strict", "namespaces", "user", "process")
"""All levels, strongest first."""
AUTO = LEVELS[1:]
"""The levels tried if none is named: strict costs time for every candidate, and is used on request."""
_MOUNTING = LEVELS[:2]
"""The levels with namespaces: with their own root and process table."""
OPEN_AT = {
    "strict": "nothing",
    "namespaces": "candidates of one worker share its namespaces, one after another",
    "user": (
        "candidates share the machine's process table and network names, may learn which files exist, and may fill the "
        "disk of the temporary folder"
    ),
    "process": (
        "candidates have the run's user id and share the machine's process table, may learn which files exist, and may "
        "fill the disk of the temporary folder"
    ),
}
"""Gaps of each level, in words."""
_ALL_NAMESPACES = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
_NESTABLE = ("user", "pid", "net", "mnt", "ipc", "uts")
_OWN = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWNET
"""Namespaces of a candidate's own at level strict, besides its user and pid namespaces."""
_SIGKILL = 9
_LIBRARY = ".library"
"""Name of the copy of the standard library inside a worker's folder."""
_NEVER_NEEDED = ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3")


@dataclass
class Jail:
    """How a worker's candidates are confined. `uid` is None if they keep the worker's user id."""

    level: str
    uid: int | None
    processes: int
    """How many processes a candidate may start besides its own."""
    facts: dict[str, bool] = field(default_factory=dict)
    parent: str = ""
    """Folder on disk that holds the scratch if nothing can be mounted."""
    lock: int | None = None
    packages: bool = False
    """Whether the installed packages are visible."""
    base_bytes: int = 0
    base_data: int = 0
    """Initial address space of a fork, and its private writable part; limits count from there."""
    filter: Filter | None = None
    rules: tuple[FileRules | None, ...] = (None, None)
    """The rules for a single candidate, and for a pair."""
    scratch: tuple[Mounted | Folder, ...] = ()
    """The folders of a single candidate, and of a pair."""
    tree: Processes | None = None
    own_pids: int | None = None
    """The zygote's pid namespace, to return to; only if each candidate gets its own."""

    @property
    def owns_pids(self) -> bool:
        """Whether the zygote is the first process of a pid namespace: one kill ends everything else in it."""
        return self.level in _MOUNTING


def enter(level: str, processes: int, temporary: str) -> Jail:
    """Take the worker's process to `level`; its next fork is the zygote. Raises Refused."""
    privileged = os.geteuid() == 0
    if level in _MOUNTING:
        uid = _spare_id_or_none() if privileged else None  # within namespaces it is a second barrier
        _own_namespaces(_ALL_NAMESPACES, uid)
        return Jail(level, uid, processes)
    if level == "user" and not privileged:
        raise Refused("only root can give candidates another user id")
    jail = Jail(level, _spare_id() if level == "user" else None, processes)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    jail.facts["network"] = privileged and _try(kernel.unshare, kernel.NEWNET)
    jail.parent, jail.lock = files.make_parent(temporary if jail.uid is None else files.open_to_others(temporary))
    return jail


def _spare_id() -> int:
    """The first of two unused user ids, a pair per worker: high in the range of this user namespace."""
    with open("/proc/self/uid_map", encoding="utf-8") as file:
        rows = [[int(number) for number in line.split()] for line in file]
    first, _, count = max(rows, key=lambda row: row[2])
    top = min(first + count - 1, (1 << 31) - 2)
    if count < 10_000:
        raise Refused("no spare user ids in this container")
    return top - 1 - 2 * (os.getpid() % min(count // 4, 1 << 22))


def _spare_id_or_none() -> int | None:
    try:
        return _spare_id()
    except Refused:
        return None


def _own_namespaces(kinds: int, uid: int | None) -> None:
    """Enter new namespaces, in which this user id, and root's spare `uid`, keep their numbers. Raises Refused."""
    mine, group = os.geteuid(), os.getegid()
    finish_maps = _start_map_helper(uid) if uid is not None else None
    try:
        kernel.unshare(kinds)
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
    """Only a process that stays outside may map two ids: fork one that waits for the namespaces."""
    target, (read, write_end) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(write_end)
        try:
            if os.read(read, 1):
                _write(f"/proc/{target}/uid_map", f"0 0 1\n{uid} {uid} 2")
                _write(f"/proc/{target}/gid_map", f"0 0 1\n{uid} {uid} 2")
            os._exit(0)
        except OSError:
            os._exit(1)
    os.close(read)

    def finish(go: bool) -> bool:
        if go:
            os.write(write_end, b"1")
        os.close(write_end)
        return os.waitpid(helper, 0)[1] == 0

    return finish


def settle(jail: Jail, packages: Sequence[str]) -> None:
    """In the zygote: the file view, protection from candidates, adoption of orphans. Raises Refused, OSError."""
    kernel.prctl(kernel.PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    with open("/proc/self/statm", encoding="utf-8") as file:
        pages = file.read().split()
    jail.base_bytes, jail.base_data = (int(pages[at]) * resource.getpagesize() for at in (0, 5))
    jail.packages = bool(packages)
    jail.tree = Processes()
    # When memory runs out, the kernel should kill a candidate and not the trainer.
    _try(_write, "/proc/self/oom_score_adj", "1000")
    view = files.needed(packages, jail.processes)
    if jail.level in _MOUNTING:
        _settle_mounts(jail, view)
    else:
        _settle_folder(jail, view, packages)
    jail.facts["user_id"] = jail.uid is not None
    jail.facts["own_namespaces"] = jail.level == "strict"
    jail.facts["scratch_bounded"] = all(scratch.bounded for scratch in jail.scratch)
    os.umask(0o077)
    _thread.stack_size(_THREAD_STACK)
    for which, value in _ALWAYS:
        _set_limit(which, value)
    # Programs that request a deep stack at once are honest; the address space bounds it.
    hard = _HARD[resource.RLIMIT_STACK]
    resource.setrlimit(resource.RLIMIT_STACK, (_at_most(resource.RLIMIT_STACK, _STACK), hard))
    kernel.prctl(kernel.DUMPABLE, 0)  # no candidate with the same user id reads or traces the zygote


def _settle_mounts(jail: Jail, view: files.View) -> None:
    strict = jail.level == "strict"
    jail.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if strict else None
    kinds = () if strict else _NESTABLE
    closed = [_try(_write, f"/proc/sys/user/max_{kind}_namespaces", "0") for kind in kinds]
    jail.facts["files_read_only"] = files.build_root(view)
    jail.facts |= {"network": True, "processes": True, "ipc": True, "files_hidden": True}
    owner = os.geteuid() if jail.uid is None else jail.uid
    alone, paired = (f"{place}/tmp" for place in files.PLACES)
    jail.scratch = (Mounted(alone, owner, each=strict), Mounted(paired, owner, each=False))  # both of a pair see it
    # The rule is on the folder above: a rule on a mount's own folder would vanish with the mount.
    jail.rules = tuple(_rules(["/usr", "/lib", "/lib64", *view.shown], [], place) for place in files.PLACES)
    jail.facts["system_calls"] = _compile_filter(jail)
    jail.facts["nested_namespaces"] = (not strict and all(closed)) or jail.filter is not None


def _settle_folder(jail: Jail, view: files.View, packages: Sequence[str]) -> None:
    if jail.uid is not None:
        _bring_library(jail.parent, packages)
    jail.scratch = tuple(Folder(jail.parent, name, jail.uid) for name in ("alone", "paired"))
    whole, named = files.pieces(view)
    library = os.path.join(jail.parent, _LIBRARY)
    jail.rules = tuple(_rules([*whole, library], named, scratch.path) for scratch in jail.scratch)
    filtered = _compile_filter(jail)
    abi = _landlock(jail)
    jail.facts["system_calls"] = jail.facts["ipc"] = jail.facts["nested_namespaces"] = filtered
    jail.facts["network"] |= filtered
    jail.facts["processes"] = jail.uid is not None or filtered or abi >= kernel.SCOPES
    jail.facts["files_hidden"] = abi > 0
    jail.facts["files_read_only"] = abi >= kernel.TRUNCATES
    if not jail.tree.lists_children():
        raise Refused("the kernel does not tell a process's children: what a candidate starts could not be ended")


def _bring_library(parent: str, packages: Sequence[str]) -> None:
    """Link or copy a standard library from a private folder to a place that another user id can read.

    Raises:
        Refused: the packages are in a private folder, too, and are too large to copy.
    """
    closed = [path for path in packages if not files.open_to_all(path)]
    if closed:
        raise Refused(f"another user id cannot read the packages in {', '.join(closed)}")
    library = os.path.dirname(os.__file__)
    if files.open_to_all(library):
        return
    import shutil  # not for the zygotes of every other level: each page they hold costs every fork

    def link(source: str, target: str) -> None:
        try:
            os.link(os.path.realpath(source), target)  # a file's own mode lets others read it; a copy takes seconds
        except OSError:
            shutil.copy2(source, target)

    def moved(paths: Sequence[str]) -> list[str]:
        return [place + path.removeprefix(library) if path.startswith(library) else path for path in paths]

    place = os.path.join(parent, _LIBRARY)
    os.mkdir(place, 0o755)
    ignored = shutil.ignore_patterns(*_NEVER_NEEDED)
    shutil.copytree(library, place, ignore=ignored, copy_function=link, dirs_exist_ok=True)
    sys.path[:] = moved(sys.path)
    for module in list(sys.modules.values()):
        if type(getattr(module, "__path__", None)) is list:
            module.__path__ = moved(module.__path__)
    sys.path_importer_cache.clear()


def _rules(whole: Sequence[str], named: Sequence[str], writable: str) -> FileRules | None:
    """Landlock's rules; None if the kernel has no Landlock. Applied once in a throw-away fork, as a check."""
    try:
        rules = FileRules()
        for path in whole:
            rules.allow(path, kernel.LOOK)
        for path in named:
            rules.allow(path, kernel.LIST)
        for path in (writable, *files.DEVICES):
            rules.allow(path)
    except OSError:
        return None
    return rules if _works(rules.take_on) else None


def _landlock(jail: Jail) -> int:
    """Landlock's version, 0 if it has no effect."""
    return min(rules.abi if rules is not None else 0 for rules in jail.rules)


def _compile_filter(jail: Jail) -> bool:
    """Give the jail a filter, if a throw-away fork could install it."""
    scoped = _landlock(jail) >= kernel.SCOPES
    try:
        jail.filter = Filter(jail.processes > 0, scoped, shares_user=jail.level == "process")
    except OSError:
        return False
    if not _works(jail.filter.install):
        jail.filter = None
    return jail.filter is not None


def _works(confining: Callable[[], None]) -> bool:
    probe = os.fork()
    if probe == 0:
        try:
            kernel.prctl(kernel.NO_NEW_PRIVS, 1)
            confining()
            os._exit(0)
        except (Refused, OSError):
            os._exit(1)
    return os.waitpid(probe, 0)[1] == 0


def _try(call: Callable[..., None], *args: object) -> bool:
    try:
        call(*args)
    except (OSError, Refused):
        return False
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


TASKS = 256
"""Threads and processes of a candidate besides those that it was granted."""
_STACK, _THREAD_STACK = 8 << 20, 4 << 20
"""Stack of the first thread, which may request more, and default stack of the others: a hundred of the usual 8 MB would
take all of a candidate's memory."""
_LIBRARIES = 2 << 30
"""Address space for mappings of installed packages."""
_ALWAYS = (
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_FSIZE, SCRATCH_MB << 20),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 64),
    (resource.RLIMIT_RTPRIO, 0),
    (resource.RLIMIT_NICE, 0),
)
"""Limits that all forks have in common."""
_HARD = {value: resource.getrlimit(value)[1] for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
"""This worker's own limits; read once."""
_COUNTED_PER_NAMESPACE = (5, 14)
"""First Linux that does not count a user's processes outside the namespace."""


def confine(jail: Jail, paired: bool, memory_mb: int, cpu_s: float) -> None:
    """Its own namespaces if the level has them, limits, another user id, and then no privilege at all.

    `paired`: one of two processes that work on one candidate, in one folder.
    """
    if jail.level == "strict":
        kernel.unshare(_OWN)
    jail.scratch[paired].enter()
    os.chdir(jail.scratch[paired].path)
    tasks = _tasks(jail)
    _set_limit(resource.RLIMIT_CPU, int(cpu_s) + 2)  # the zygote watches the exact limit; this is the floor below it
    _set_limit(resource.RLIMIT_DATA, jail.base_data + (memory_mb << 20))
    _set_limit(resource.RLIMIT_AS, jail.base_bytes + (memory_mb << 20) + (_LIBRARIES if jail.packages else 0))
    _set_limit(resource.RLIMIT_NPROC, tasks)
    if jail.uid is not None:
        os.setgroups([])
        os.setresgid(jail.uid, jail.uid, jail.uid)
        os.setresuid(jail.uid, jail.uid, jail.uid)
    if jail.level == "strict":
        kernel.unshare(kernel.NEWUSER)
    kernel.drop_capabilities()
    kernel.prctl(kernel.NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PDEATHSIG, _SIGKILL)
    rules = jail.rules[paired]
    if rules is not None:
        rules.take_on()
    if jail.filter is not None:
        jail.filter.install()


def _tasks(jail: Jail) -> int:
    """Limit on tasks. If the user id is the run's and counts beyond the namespace, the user's other tasks count, too."""
    own = TASKS + jail.processes
    linux = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if jail.uid is not None or (jail.owns_pids and linux >= _COUNTED_PER_NAMESPACE):
        return own
    return own + jail.tree.everybody()


def _set_limit(which: int, value: int) -> None:
    value = _at_most(which, value)
    resource.setrlimit(which, (value, value))


def _at_most(which: int, value: int) -> int:
    hard = _HARD[which]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
