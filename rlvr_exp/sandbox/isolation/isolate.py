"""The isolation of a worker by the kernel, in several levels; each level reports what it does not isolate.

`strict`: like `namespaces`, and each candidate has its own user, pid, mount, network, ipc and uts namespaces.
`namespaces`: the worker's candidates, one after another, share such namespaces: a root of little more than
the interpreter, read-only; no network, no other process, no /proc; the pid namespace's end kills whatever they started.
Works as root and as an ordinary user where user namespaces are allowed.
`user`: root without them; candidates run as an unused user id per worker.
`process`: without even that; candidates share the user id of the run.

On every level each candidate has limits, no capabilities, an allow-list of system calls and, where the kernel has it,
Landlock: files outside the list of `root` cannot be opened, signals and sockets do not leave. Standard library only.
"""

import os
from collections.abc import Callable, Sequence

from rlvr_exp.sandbox.isolation import confine, kernel, landlock, root, users
from rlvr_exp.sandbox.isolation.filter import Filter
from rlvr_exp.sandbox.isolation.jail import MOUNTING, Jail
from rlvr_exp.sandbox.isolation.kernel import Refused
from rlvr_exp.sandbox.isolation.process_tree import Processes
from rlvr_exp.sandbox.isolation.scratch import Folder, Mounted, make_parent, open_to_others

_ALL_NAMESPACES = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWUSER | kernel.NEWPID | kernel.NEWNET
_NESTABLE = ("user", "pid", "net", "mnt", "ipc", "uts")
_SIGKILL = 9


def enter(level: str, processes: int, temporary: str) -> Jail:
    """Take the worker's process to `level`; its next fork is the zygote. Raises Refused."""
    privileged = os.geteuid() == 0
    if level in MOUNTING:
        uid = _spare_id() if privileged else None
        users.own_namespaces(_ALL_NAMESPACES, uid)
        return Jail(level, uid, processes)
    if level == "user" and not privileged:
        raise Refused("only root can give candidates another user id")
    jail = Jail(level, users.spare_id() if level == "user" else None, processes)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    jail.facts["network"] = privileged and _try(kernel.unshare, kernel.NEWNET)
    jail.parent, jail.lock = make_parent(temporary if jail.uid is None else open_to_others(temporary))
    return jail


def _spare_id() -> int | None:
    """Another user id for candidates, where there is one: within namespaces it is a second barrier."""
    try:
        return users.spare_id()
    except Refused:
        return None


def settle(jail: Jail, packages: Sequence[str]) -> None:
    """In the zygote: the file view, protection from candidates, adoption of orphans. Raises Refused, OSError."""
    kernel.prctl(kernel.PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.CHILD_SUBREAPER, 1)
    jail.base_bytes, jail.base_data = confine.own_memory()
    jail.packages = bool(packages)
    jail.tree = Processes()
    # When memory runs out, the kernel should kill a candidate and not the trainer.
    _try(users.write, "/proc/self/oom_score_adj", "1000")
    view = root.needed(packages, jail.processes)
    if jail.level in MOUNTING:
        _settle_mounts(jail, view)
    else:
        _settle_folder(jail, view, packages)
    jail.facts["user_id"] = jail.uid is not None
    jail.facts["own_namespaces"] = jail.level == "strict"
    jail.facts["scratch_bounded"] = all(scratch.bounded for scratch in jail.scratch)
    os.umask(0o077)
    confine.limit_forks()
    kernel.prctl(kernel.DUMPABLE, 0)  # no candidate with the same user id reads or traces the zygote


def _settle_mounts(jail: Jail, view: root.View) -> None:
    jail.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if jail.level == "strict" else None
    closed = _close_nesting() if jail.level == "namespaces" else False
    jail.facts["files_read_only"] = root.build(view)
    jail.facts |= {"network": True, "processes": True, "ipc": True, "files_hidden": True}
    each = jail.level == "strict"
    owner = os.geteuid() if jail.uid is None else jail.uid
    alone, paired = (f"{place}/tmp" for place in root.PLACES)
    jail.scratch = (Mounted(alone, owner, each), Mounted(paired, owner, each=False))  # both of a pair see it
    # The rule is on the folder above: a rule on a mount's own folder would vanish with the mount.
    jail.rules = tuple(_rules(["/usr", "/lib", "/lib64", *view.shown], [], place) for place in root.PLACES)
    jail.facts["system_calls"] = _compile_filter(jail)
    jail.facts["nested_namespaces"] = closed or jail.filter is not None


def _settle_folder(jail: Jail, view: root.View, packages: Sequence[str]) -> None:
    if jail.uid is not None:
        users.bring_library(jail.parent, packages)
    jail.scratch = tuple(Folder(jail.parent, name, jail.uid) for name in ("alone", "paired"))
    whole, named = root.pieces(view)
    library = os.path.join(jail.parent, users.LIBRARY)
    jail.rules = tuple(_rules([*whole, library], named, scratch.path) for scratch in jail.scratch)
    jail.facts["system_calls"] = _compile_filter(jail)
    jail.facts["network"] |= jail.filter is not None
    abi = _abi(jail)
    scoped = abi >= landlock.SCOPES
    jail.facts["processes"] = jail.uid is not None or jail.filter is not None or scoped
    jail.facts["ipc"] = jail.filter is not None
    jail.facts["files_hidden"] = abi > 0
    jail.facts["files_read_only"] = abi >= landlock.TRUNCATES
    jail.facts["nested_namespaces"] = jail.filter is not None
    if not jail.tree.lists_children():
        raise Refused("the kernel does not tell a process's children: what a candidate starts could not be ended")


def _abi(jail: Jail) -> int:
    """Landlock's version, 0 where it has no effect."""
    return min(rules.abi if rules is not None else 0 for rules in jail.rules)


def _rules(whole: Sequence[str], named: Sequence[str], writable: str) -> landlock.Rules | None:
    """Landlock's rules; None where the kernel has no Landlock. Applied once in a throw-away fork, as a check."""
    try:
        rules = landlock.Rules()
        for path in whole:
            rules.allow(path, landlock.LOOK)
        for path in named:
            rules.allow(path, landlock.LIST)
        for path in (writable, *root.DEVICES):
            rules.allow(path)
    except OSError:
        return None
    return rules if _works(rules.take_on) else None


def _compile_filter(jail: Jail) -> bool:
    """A filter that a throw-away fork could install, or None."""
    scoped = _abi(jail) >= landlock.SCOPES
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


def _close_nesting() -> bool:
    closed = [_try(users.write, f"/proc/sys/user/max_{kind}_namespaces", "0") for kind in _NESTABLE]
    return all(closed)


def _try(call: Callable[..., None], *args: object) -> bool:
    try:
        call(*args)
    except (OSError, Refused):
        return False
    return True
