"""The system calls that a candidate may not make: a seccomp filter, which every container lets a process add.

It denies what reaches other processes (signals, tracing, their limits and priorities), sockets, namespaces and mounts,
key rings, System V memory, io_uring and, where no processes are allowed, forking. Threads stay. Denied calls fail
with EPERM, so that code which only tries goes on. Tables for x86_64 and aarch64. Standard library only.
"""

import ctypes
import os
import struct

_CALLS = {
    # name: (x86_64, aarch64); None: not there
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "socket": (41, 198),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
_FORKS = {"fork": (57, None), "vfork": (58, None)}
_CLONE, _CLONE3, _PRLIMIT, _FCNTL = (56, 220), (435, 435), (302, 261), (72, 25)
_SIGNAL_ASKING_FCNTL = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: a signal to any process of the same user
_CLONE_THREAD = 0x10000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
_ALLOW, _DENY, _NOT_THERE, _END = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


class Filter:
    """A filter compiled once, then installed in each fork.

    Raises:
        OSError: no table for this machine.
    """

    def __init__(self, forks: bool):
        machine = os.uname().machine
        if machine not in _MACHINES:
            raise OSError(f"no system call table for {machine}")
        column, arch = _MACHINES[machine]
        self._code = b"".join(_compile(column, arch, forks))
        self._program = _Program(len(self._code) // 8, self._code)
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def install(self) -> None:
        """For this process and all it becomes; needs no_new_privs. Raises OSError."""
        if self._prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(self._program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")


def _compile(column: int, arch: int, forks: bool) -> list[bytes]:
    denied = _CALLS if forks else _CALLS | _FORKS
    numbers = [row[column] for row in denied.values() if row[column] is not None]
    code = [_op(_LOAD, _ARCH), _op(_EQUAL, arch, 1, 0), _op(_RETURN, _END), _op(_LOAD, _NUMBER)]
    code += [_op(_AT_LEAST, _X32, 0, 1), _op(_RETURN, _DENY)]
    for number in numbers:
        code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, _DENY)]
    # glibc asks for clone3 first, whose flags a filter cannot read, and takes clone where it is not there.
    code += [_op(_EQUAL, _CLONE3[column], 0, 1), _op(_RETURN, _NOT_THERE)]
    if not forks:
        thread = [_op(_ANY_BIT, _CLONE_THREAD, 0, 1), _op(_RETURN, _ALLOW), _op(_RETURN, _DENY)]
        code += _when(_CLONE[column], _FIRST, thread)
    code += _when(_PRLIMIT[column], _FIRST, [_op(_EQUAL, 0, 0, 1), _op(_RETURN, _ALLOW), _op(_RETURN, _DENY)])
    asking = [part for command in _SIGNAL_ASKING_FCNTL for part in (_op(_EQUAL, command, 0, 1), _op(_RETURN, _DENY))]
    code += _when(_FCNTL[column], _SECOND, [*asking, _op(_RETURN, _ALLOW)])
    return [*code, _op(_RETURN, _ALLOW)]


def _when(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """For one call: its argument's low word decides; the body returns in every branch."""
    return [_op(_EQUAL, number, 0, len(body) + 1), _op(_LOAD, argument), *body]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
