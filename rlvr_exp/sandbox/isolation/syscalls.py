"""The system calls that a candidate may make: name, number on x86_64, number on aarch64 ("-": missing).

An allow-list: calls that are not listed fail, so that a new kernel's calls are denied until they are reviewed. Listed
are the calls that the standard library, threads, asyncio, temporary files, subprocess, numpy, pandas and torch need on
one machine without a network; each was reviewed for what it reaches outside the caller's own process. Left out on
purpose, besides all that needs privileges: sockets and their addresses, signals with values, memfd (memory that no
limit counts), POSIX and System V queues and shared memory, key rings, io_uring, tracing and reading of other processes,
handles of files, namespaces and mounts, extended attributes (notes for the next candidate), priorities and affinity,
personality, sync; calls that work on the pages of shared files (splice and the like, mincore) or report what others do
with them (inotify). Standard library only.
"""

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
"""Calls by which a process leaves the group that ends with its candidate."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of a machine's numbers, and its name for the kernel."""


def allowed(column: int) -> dict[str, int]:
    """Numbers of the calls that are allowed whatever their arguments."""
    rows = [entry.split(":") for entry in _ALLOWED.split()]
    return {row[0]: int(row[1 + column]) for row in rows if row[1 + column] != "-" and row[0] not in RULED}
