"""External programs that read untrusted text (a proof checker and its solver): started confined, measured, ended.

A program runs in its own session under a small supervisor, which ends all its processes when the program or the caller
is gone, and, where the kernel allows it, in its own network, ipc and pid namespaces. The caller names its environment.
The caller reads time and memory of the process tree from /proc, since address-space limits break runtimes that reserve
much and use little. Not isolated: files that the user may read. Never judges a program's output.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rlvr_exp.sandbox.isolation import kernel
from rlvr_exp.sandbox.isolation.kernel import Refused

_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, {root!r}); from rlvr_exp.sandbox import tools; tools.supervise({order!r})"
_FACTS = ".isolation"
_FILE_BYTES, _OPEN_FILES = 64 << 20, 256
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = resource.getpagesize() >> 10


@dataclass(frozen=True)
class Usage:
    """What a program and all its processes have used."""

    cpu_s: float
    memory_mb: float


class Program:
    """One running program in a private folder, with pipes to its input and output; its error stream is
    dropped.

    Args:
        command: the program and its words; looked up on the PATH of `environment`.
        environment: the complete environment; HOME and TMPDIR are the private folder.
        files: text files put into the folder, by name.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], files: Mapping[str, str] | None = None):
        self.folder = Path(tempfile.mkdtemp(prefix="rlvr-tool-"))
        for name, text in (files or {}).items():
            (self.folder / name).write_text(text, encoding="utf-8", newline="")
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        order = json.dumps({"command": list(command), "parent": os.getpid()})
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _BOOT.format(root=_ROOT, order=order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**environment, **own},
            cwd=self.folder,
            start_new_session=True,
        )
        self.input = cast(IO[bytes], self._process.stdin)
        self.output = cast(IO[bytes], self._process.stdout)

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._process.pid

    def usage(self) -> Usage:
        """The usage of all processes below the supervisor; ended processes count once their parent has reaped them."""
        ticks = pages = 0
        for pid in _below(self.pid):
            fields = _stat(pid)
            ticks += sum(int(field) for field in fields[11:15])
            pages += int(fields[21]) if fields else 0
        return Usage(ticks / _TICKS, pages * _PAGE_KB / 1024)

    def isolated(self) -> list[str]:
        """What this program is isolated from, as reported by the kernel; known after its first output."""
        try:
            return json.loads((self.folder / _FACTS).read_text())
        except OSError:  # not started yet
            return []

    def wait(self) -> int:
        """The exit status, once it has ended by itself."""
        return self._process.wait()

    def end(self) -> None:
        """Kill all of it and remove its folder."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self.input.close()
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _below(pid: int) -> list[int]:
    """Every process below `pid`; a process that ends meanwhile may be missing."""
    found, ahead = [], [pid]
    while ahead:
        ahead = [child for parent in ahead for child in _children(parent)]
        found += ahead
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:  # it is gone
        return []


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def supervise(order: str) -> None:
    """The supervisor's main function; called by the command line that `Program` builds."""
    orders: dict[str, Any] = json.loads(order)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    Path(_FACTS).write_text(json.dumps(_separate()))
    child = os.fork()
    if child == 0:
        _become(orders["command"])
    for standard in (0, 1):  # the pipes end with the program
        os.close(standard)
    pid = 0
    while not pid:
        signal.sigtimedwait([signal.SIGCHLD], 1.0)
        pid, status = os.waitpid(child, os.WNOHANG)
        if os.getppid() != orders["parent"]:  # polled, since a death signal would follow the caller's thread
            shutil.rmtree(os.getcwd(), ignore_errors=True)
            os.killpg(0, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _separate() -> list[str]:
    """Leave the network, the ipc objects and the processes of the machine, as far as the kernel allows."""
    user, group = os.geteuid(), os.getegid()
    wanted = kernel.NEWNET | kernel.NEWIPC | kernel.NEWPID
    try:
        kernel.unshare(wanted if user == 0 else wanted | kernel.NEWUSER)
        if user != 0:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except (Refused, OSError):
        return []
    return ["ipc", "network", "processes"]


def _become(command: Sequence[str]) -> None:
    try:
        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
        kernel.prctl(kernel.NO_NEW_PRIVS, 1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
        os.execvp(command[0], list(command))
    finally:
        os._exit(127)
