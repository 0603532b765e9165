"""How a candidate's fresh fork drops its privileges, step by step and irreversibly. Standard library only.

Memory is bounded by a process's private writable memory (RLIMIT_DATA), and by its address space, which has extra room
for libraries of installed packages: they are mapped, not held.
"""

import _thread
import os
import resource

from rlvr_exp.sandbox.isolation import kernel
from rlvr_exp.sandbox.isolation.jail import Jail
from rlvr_exp.sandbox.isolation.scratch import SCRATCH_MB

_OWN = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWNET
_SIGKILL = 9
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
_HARD = {value: resource.getrlimit(value)[1] for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
"""This worker's own limits; read once."""
_COUNTED_PER_NAMESPACE = (5, 14)
"""Linux from which on a user's processes outside the namespace do not count."""


def confine(jail: Jail, paired: bool, memory_mb: int, cpu_s: float) -> None:
    """Its own namespaces where the level has them, limits, another user id, and then no privilege at all.

    `paired`: one of two processes that work on one candidate, in one folder.
    """
    if jail.level == "strict":
        kernel.unshare(_OWN)
    jail.scratch[paired].enter()
    os.chdir(jail.scratch[paired].path)
    _limit(jail, memory_mb, cpu_s)
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


def _limit(jail: Jail, memory_mb: int, cpu_s: float) -> None:
    limits = (
        (resource.RLIMIT_CPU, int(cpu_s) + 2),  # the zygote watches the exact limit; this is the floor below it
        (resource.RLIMIT_DATA, jail.base_data + (memory_mb << 20)),
        (resource.RLIMIT_AS, jail.base_bytes + (memory_mb << 20) + (_LIBRARIES if jail.packages else 0)),
        (resource.RLIMIT_NPROC, _tasks(jail)),
    )
    for which, value in limits:
        value = _at_most(which, value)
        resource.setrlimit(which, (value, value))


def _at_most(which: int, value: int) -> int:
    hard = _HARD[which]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def limit_forks() -> None:
    """In the zygote: the limits that all its forks have in common."""
    _thread.stack_size(_THREAD_STACK)
    for which, value in _ALWAYS:
        value = _at_most(which, value)
        resource.setrlimit(which, (value, value))
    # Programs that request a deep stack at once are honest; the address space bounds it.
    hard = _HARD[resource.RLIMIT_STACK]
    resource.setrlimit(resource.RLIMIT_STACK, (_at_most(resource.RLIMIT_STACK, _STACK), hard))


def _tasks(jail: Jail) -> int:
    """Limit on tasks. Where the user id is the run's and counts beyond the namespace, the user's others count, too."""
    own = TASKS + jail.processes
    if jail.uid is not None or (jail.owns_pids and _kernel() >= _COUNTED_PER_NAMESPACE):
        return own
    return own + jail.tree.everybody()


def own_memory() -> tuple[int, int]:
    """Bytes that this process has mapped, and the bytes among them that are private and writable."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        pages = file.read().split()
    return int(pages[0]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
