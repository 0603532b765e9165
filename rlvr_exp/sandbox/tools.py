"""External programs that read untrusted text (a proof checker and its solver): started confined, measured, ended.

A program runs in its own session under a small supervisor. That ends all its processes when the program or the caller
is gone. If the kernel allows it, the program has its own network, ipc and pid namespaces. The caller names its environment.
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
from rlvr_exp.sandbox.isolation.process_tree import Processes

_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, {root!r}); from rlvr_exp.sandbox import tools; tools.supervise({order!r})"
_FACTS = ".isolation"
_FILE_BYTES, _OPEN_FILES = 64 << 20, 256
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = resource.getpagesize() >> 10
_TABLE = Processes()
_NO_STREAMS: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


@dataclass(frozen=True)
class Usage:
    """The usage of a program and all its processes."""

    cpu_s: float
    memory_mb: float


class Lost(Exception):
    """A program that does not start, or that cannot be ended. The message says why."""


class Supervised:
    """One running command with a private folder and pipes to its input and output.

    Args:
        command: the program and its words; looked up on the PATH of `environment`.
        environment: the complete environment.
        folder: the private folder, its working directory, removed at the end.
        trusted: it has the caller's rights: an engine that itself confines what it starts.
        cleanup: a command that the supervisor runs if the caller is gone.
        errors: the target of its error stream; dropped by default.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        trusted: bool = False,
        cleanup: Sequence[str] = (),
        errors: IO[bytes] | int = subprocess.DEVNULL,
    ):
        self.folder = folder
        order = {"command": list(command), "parent": os.getpid(), "trusted": trusted, "cleanup": list(cleanup)}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _BOOT.format(root=_ROOT, order=json.dumps(order))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        self.input = cast(IO[bytes], self._process.stdin)
        self.output = cast(IO[bytes], self._process.stdout)

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._process.pid

    def usage(self) -> Usage:
        """The usage of all its processes; ended processes count once their parent has reaped them."""
        return usage_of(_TABLE.below(self.pid))

    def send(self, data: bytes) -> None:
        """Write all of it to its input. Raises OSError if its end of the pipe is gone."""
        left = memoryview(data)
        while left:
            left = left[self.input.write(left) :]

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


class Program(Supervised):
    """One running program of this machine, confined.

    Args:
        command: as above. environment: as above; HOME and TMPDIR are the private folder.
        files: files put into the folder, by name.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ):
        folder = private_folder()
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        own = {"HOME": str(folder), "TMPDIR": str(folder)}
        super().__init__(command, {**environment, **own}, folder)

    def isolated(self) -> list[str]:
        """The kinds of isolation of this program, as the kernel reports them; known after its first output."""
        try:
            return json.loads((self.folder / _FACTS).read_text())
        except OSError:  # not started yet
            return []


def private_folder() -> Path:
    """A new folder of this user alone."""
    return Path(tempfile.mkdtemp(prefix="rlvr-tool-"))


def usage_of(pids: Sequence[int]) -> Usage:
    """The usage of these processes and of those that they have reaped."""
    ticks = pages = 0
    for pid in pids:
        try:
            fields = _TABLE.stat(pid)
        except OSError:  # it is gone
            continue
        ticks += sum(int(field) for field in fields[11:15])
        pages += int(fields[21])
    return Usage(ticks / _TICKS, pages * _PAGE_KB / 1024)


def tree(pid: int) -> list[int]:
    """A process and every process below it; a process that ends meanwhile may be missing."""
    return [pid, *_TABLE.below(pid)]


def supervise(order: str) -> None:
    """The supervisor's main function; called by the command line that `Program` builds."""
    orders: dict[str, Any] = json.loads(order)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    if not orders["trusted"]:
        Path(_FACTS).write_text(json.dumps(_separate()))
    child = os.fork()
    if child == 0:
        _become(orders["command"], orders["trusted"])
    for standard in (0, 1):  # the pipes end with the program
        os.close(standard)
    pid = 0
    while not pid:
        signal.sigtimedwait([signal.SIGCHLD], 1.0)
        pid, status = os.waitpid(child, os.WNOHANG)
        if os.getppid() != orders["parent"]:  # polled, since a death signal would follow the caller's thread
            if orders["cleanup"]:  # in a session of its own, which outlives this one
                subprocess.Popen(orders["cleanup"], start_new_session=True, **_NO_STREAMS)
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


def _become(command: Sequence[str], trusted: bool) -> None:
    try:
        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        if not trusted:
            kernel.prctl(kernel.NO_NEW_PRIVS, 1)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
            resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
        os.execvp(command[0], list(command))
    finally:
        os._exit(127)
