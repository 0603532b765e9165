"""Seccomp: the filter through which a candidate's system calls pass; every container lets a process add one.

Calls outside the list of `syscalls` fail with EPERM, so that code which only tries continues; calls newer than the list
fail with ENOSYS, so that libraries use the older call. Calls of another machine's table end the process. Standard
library only.
"""

import ctypes
import errno
import os
import struct

from rlvr_exp.sandbox.isolation.syscalls import GROUPS, MACHINES, METADATA, RULED, allowed

_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _END, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_DENY, _NOT_THERE, _PRETEND, _NO_TTY = (_ERRNO | number for number in (errno.EPERM, errno.ENOSYS, 0, errno.ENOTTY))
_THREAD, _NEW_OR_SIBLING = 0x10000, 0x7E02A000
"""Flags of clone: a thread; new namespaces, CLONE_PTRACE, CLONE_PARENT."""
_PRCTL = (2, 3, 15, 16, 23, 30, 39, 0x53564D41)
"""Reading options, the name, the naming of memory; not the death signal, dumpability, tracers or adoption."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what isatty and subprocess use."""
_FCNTL_DENIED = (8, 10, 15, 1024, 1026, 1031)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX (signals to others), F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ (memory)."""
_MEMBARRIER = (0, 8, 16, 32, 64, 128, 256)
"""The query and the commands within the process; global commands interrupt every core."""
_STREAM, _SEQPACKET, _KIND, _UNIX = 1, 5, 0xF, 1
_AND = 0x54
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_OWN_ID = 0x7FFFFFF1
"""Placeholder for the process's own id, which each fork fills in."""


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


class Filter:
    """A filter compiled once, then installed in each fork.

    Args:
        forks: the candidate may start processes, and other programs in them.
        signals_scoped: the kernel keeps its signals among its own processes, so that they need no rule.
        shares_user: the candidate has the run's user id: the modes and times of that user's files stay as they are, and
            a process stays in its candidate's group, by which all are ended, since no limit on processes may hold.

    Raises:
        OSError: no table for this machine.
    """

    def __init__(self, forks: bool, signals_scoped: bool = False, shares_user: bool = False):
        machine = os.uname().machine
        if machine not in MACHINES:
            raise OSError(f"no system call table for {machine}")
        column, arch = MACHINES[machine]
        code = _compile(column, arch, forks, signals_scoped, shares_user)
        own_id = struct.pack("=I", _OWN_ID)
        self._holes = [8 * at + 4 for at, step in enumerate(code) if step.endswith(own_id)]
        self._code = ctypes.create_string_buffer(b"".join(code))
        self._program = _Program(len(code), ctypes.cast(self._code, ctypes.c_char_p))
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def install(self) -> None:
        """Install it for this process and its descendants; needs no_new_privs. Raises OSError."""
        own_id = struct.pack("=I", os.getpid())
        for hole in self._holes:
            self._code[hole : hole + 4] = own_id
        if self._prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(self._program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")


def _compile(column: int, arch: int, forks: bool, signals_scoped: bool, shares_user: bool) -> list[bytes]:
    number = {name: row[column] for name, row in RULED.items() if row[column] is not None}
    plain = allowed(column)
    pretended = (*METADATA, *GROUPS) if shares_user else ()
    bodies = {n: [_op(_RETURN, _PRETEND if name in pretended else _ALLOW)] for name, n in plain.items()}
    # glibc tries clone3 first, whose flags a filter cannot read, and falls back to clone.
    bodies[number["clone3"]] = [_op(_RETURN, _NOT_THERE)]
    for name in number.keys() & {"fork", "vfork", "execve", "execveat"}:
        bodies[number[name]] = [_op(_RETURN, _ALLOW if forks else _DENY)]
    bodies[number["clone"]] = _load(0) + (_unless_bits(_NEW_OR_SIBLING) if forks else _if_bits(_THREAD))
    for name in ("kill", "tgkill"):
        own = [_op(_RETURN, _ALLOW)] if forks and signals_scoped else _load(0) + _one_of((_OWN_ID,), _DENY)
        bodies[number[name]] = own
    bodies[number["prctl"]] = _load(0) + _one_of(_PRCTL, _DENY)
    bodies[number["ioctl"]] = _load(1) + _one_of(_IOCTL, _NO_TTY)
    bodies[number["fcntl"]] = _load(1) + _none_of(_FCNTL_DENIED)
    bodies[number["prlimit64"]] = _load(0) + _one_of((0,), _DENY)
    bodies[number["socketpair"]] = _stream_pairs()
    bodies[number["membarrier"]] = _load(0) + _one_of(_MEMBARRIER, _DENY)
    bodies[number["fadvise64"]] = [_op(_RETURN, _PRETEND)]  # advice, which could throw files out of the memory of all
    # A destination is for sockets without a peer, which cannot be created.
    bodies[number["sendto"]] = _zero(_load(4)) + _zero(_load(4, high=True)) + [_op(_RETURN, _ALLOW)]
    head = [_op(_LOAD, _ARCH), _op(_EQUAL, arch, 1, 0), _op(_RETURN, _END), _op(_LOAD, _NUMBER)]
    return head + _search(_segments(bodies))


def _segments(bodies: dict[int, list[bytes]]) -> list[tuple[int, list[bytes]]]:
    """(first number, action from there on): denied between the named calls, missing beyond the table."""
    top = max(bodies)
    steps: list[tuple[int, list[bytes]]] = []
    for number in range(top + 2):
        body = bodies.get(number, [_op(_RETURN, _DENY if number <= top else _NOT_THERE)])
        if not steps or steps[-1][1] != body:
            steps.append((number, body))
    return steps


def _search(segments: list[tuple[int, list[bytes]]]) -> list[bytes]:
    """A tree of comparisons: the kernel walks a filter for every call's number each time one is installed."""
    if len(segments) == 1:
        return segments[0][1]
    middle = len(segments) // 2
    below, above = _search(segments[:middle]), _search(segments[middle:])
    return [_op(_AT_LEAST, segments[middle][0], 0, 1), _op(_JUMP, len(below)), *below, *above]


def _stream_pairs() -> list[bytes]:
    """Unix streams: a datagram socket could be redirected to any other address."""
    kind = [*_load(1), _op(_AND, _KIND), *_one_of((_STREAM, _SEQPACKET), _DENY)]
    return [*_load(0), _op(_EQUAL, _UNIX, 1, 0), _op(_RETURN, _DENY), *kind]


def _always(number: int, answer: int) -> list[bytes]:
    return [_op(_EQUAL, number, 0, 1), _op(_RETURN, answer)]


def _load(argument: int, high: bool = False) -> list[bytes]:
    """An argument's low word, or its high word."""
    return [_op(_LOAD, _ARGUMENTS + 8 * argument + 4 * high)]


def _one_of(values: tuple[int, ...], otherwise: int) -> list[bytes]:
    return [part for value in values for part in _always(value, _ALLOW)] + [_op(_RETURN, otherwise)]


def _none_of(values: tuple[int, ...]) -> list[bytes]:
    return [part for value in values for part in _always(value, _DENY)] + [_op(_RETURN, _ALLOW)]


def _if_bits(bits: int) -> list[bytes]:
    return [_op(_ANY_BIT, bits, 0, 1), _op(_RETURN, _ALLOW), _op(_RETURN, _DENY)]


def _unless_bits(bits: int) -> list[bytes]:
    return [_op(_ANY_BIT, bits, 0, 1), _op(_RETURN, _DENY), _op(_RETURN, _ALLOW)]


def _zero(load: list[bytes]) -> list[bytes]:
    return [*load, _op(_EQUAL, 0, 1, 0), _op(_RETURN, _DENY)]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
