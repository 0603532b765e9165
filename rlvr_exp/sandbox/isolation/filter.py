"""Seccomp: the filter of a candidate's system calls; every container lets a process add one.

Calls outside an allow-list fail with EPERM, so that code that only tries continues; calls newer than the list
fail with ENOSYS, so that libraries use the older call. Calls of another machine's table end the process. Standard
library only.
"""

import ctypes
import errno
import os
import struct

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
    bits, if_any, otherwise = (_NEW_OR_SIBLING, _DENY, _ALLOW) if forks else (_THREAD, _ALLOW, _DENY)
    bodies[number["clone"]] = [*_load(0), _op(_ANY_BIT, bits, 0, 1), _op(_RETURN, if_any), _op(_RETURN, otherwise)]
    for name in ("kill", "tgkill"):
        own = [_op(_RETURN, _ALLOW)] if forks and signals_scoped else _load(0) + _one_of((_OWN_ID,), _DENY)
        bodies[number[name]] = own
    bodies[number["prctl"]] = _load(0) + _one_of(_PRCTL, _DENY)
    bodies[number["ioctl"]] = _load(1) + _one_of(_IOCTL, _NO_TTY)
    bodies[number["fcntl"]] = _load(1) + _one_of(_FCNTL_DENIED, _ALLOW, _DENY)
    bodies[number["prlimit64"]] = _load(0) + _one_of((0,), _DENY)
    # Unix streams: a datagram socket could be redirected to any other address.
    kind = [*_load(1), _op(_AND, _KIND), *_one_of((_STREAM, _SEQPACKET), _DENY)]
    bodies[number["socketpair"]] = [*_load(0), _op(_EQUAL, _UNIX, 1, 0), _op(_RETURN, _DENY), *kind]
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


def _load(argument: int, high: bool = False) -> list[bytes]:
    """An argument's low word, or its high word."""
    return [_op(_LOAD, _ARGUMENTS + 8 * argument + 4 * high)]


def _one_of(values: tuple[int, ...], otherwise: int, answer: int = _ALLOW) -> list[bytes]:
    steps = [part for value in values for part in (_op(_EQUAL, value, 0, 1), _op(_RETURN, answer))]
    return [*steps, _op(_RETURN, otherwise)]


def _zero(load: list[bytes]) -> list[bytes]:
    return [*load, _op(_EQUAL, 0, 1, 0), _op(_RETURN, _DENY)]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


# Name, number on x86_64, number on aarch64 ("-": missing). Calls that are not listed fail, so that a new kernel's calls
# are denied until they are reviewed. Listed are the calls that the standard library, threads, asyncio, temporary files,
# subprocess, numpy, pandas and torch need on one machine without a network; each was reviewed for its reach outside the
# caller's own process. Left out on purpose, besides all that needs privileges: sockets and their addresses, signals
# with values, memfd (memory that no limit counts), POSIX and System V queues and shared memory, key rings, io_uring,
# tracing and reading of other processes, handles of files, namespaces and mounts, extended attributes (notes for the
# next candidate), priorities and affinity, personality, sync; calls that work on the pages of shared files (splice and
# the like, mincore) or report what others do with them (inotify).
_ALLOWED = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222 mprotect:10:226
munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 pread64:17:67 pwrite64:18:68
readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124 mremap:25:216 msync:26:227
madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101 getitimer:36:102 alarm:37:-
setitimer:38:103 getpid:39:172 sendfile:40:71 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212
shutdown:48:210 getsockname:51:204 getpeername:52:205 getsockopt:55:209 exit:60:93 wait4:61:260
uname:63:160 flock:73:32 fsync:74:82 fdatasync:75:83 truncate:76:45 ftruncate:77:46 getdents:78:- getcwd:79:17 getdents64:217:61
chdir:80:49 fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:- readlink:89:-
chmod:90:- fchmod:91:52 chown:92:- fchown:93:55 lchown:94:- umask:95:166 gettimeofday:96:169 getrlimit:97:163
getrusage:98:165 sysinfo:99:179 times:100:153 getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177
setpgid:109:154 getppid:110:173 getpgrp:111:- setsid:112:157 getgroups:115:158 getresuid:118:148 getresgid:120:150
getpgid:121:155 getsid:124:156 capget:125:90 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133
sigaltstack:131:132 utime:132:- mknod:133:- statfs:137:43 fstatfs:138:44 getpriority:140:141 sched_getparam:143:121
sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 sched_rr_get_interval:148:127
mlock:149:228 munlock:150:229 arch_prctl:158:- setrlimit:160:164 gettid:186:178 getxattr:191:8
lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13 time:201:- futex:202:98
sched_getaffinity:204:123 epoll_create:213:- set_tid_address:218:96 restart_syscall:219:128
timer_create:222:107 timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111
clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94 epoll_wait:232:- epoll_ctl:233:21
utimes:235:- get_mempolicy:239:236 waitid:247:95
openat:257:56 mkdirat:258:34 mknodat:259:33 fchownat:260:54 futimesat:261:- newfstatat:262:79 unlinkat:263:35
renameat:264:38 linkat:265:37 symlinkat:266:36 readlinkat:267:78 fchmodat:268:53 faccessat:269:48 pselect6:270:72
ppoll:271:73 set_robust_list:273:99 utimensat:280:88
epoll_pwait:281:22 signalfd:282:- timerfd_create:283:85 eventfd:284:- fallocate:285:47 timerfd_settime:286:86
timerfd_gettime:287:87 signalfd4:289:74 eventfd2:290:19 epoll_create1:291:20 dup3:292:24 pipe2:293:59
preadv:295:69 pwritev:296:70 getcpu:309:168 renameat2:316:276 getrandom:318:278
mlock2:325:284 copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 pkey_mprotect:329:288
pkey_alloc:330:289 pkey_free:331:290 statx:332:291 rseq:334:293 close_range:436:436 openat2:437:437 faccessat2:439:439
epoll_pwait2:441:441 futex_waitv:449:449 fchmodat2:452:452
"""

RULED = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "prctl": (157, 167),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "prlimit64": (302, 261),
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "membarrier": (324, 283),
    "fadvise64": (221, 223),
}
"""Allowed within rules on their arguments (filter.py)."""
METADATA = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
"""Changes of a file that need only its owner's id, without the right to write it."""
GROUPS = ("setsid", "setpgid")
"""Calls that take a process out of the group that ends with its candidate."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of a machine's numbers, and its name for the kernel."""


def allowed(column: int) -> dict[str, int]:
    """Numbers of the calls that are allowed whatever their arguments."""
    rows = [entry.split(":") for entry in _ALLOWED.split()]
    return {row[0]: int(row[1 + column]) for row in rows if row[1 + column] != "-" and row[0] not in RULED}
