"""External programs that read untrusted text (a proof checker and its solver): started confined, measured, ended.

A program runs in its own session under a small supervisor. That ends all its processes when the program or the caller
is gone. If the kernel allows it, the program has its own network, ipc and pid namespaces. The caller names its environment.
The caller reads time and memory of the process tree from /proc, since address-space limits break runtimes that reserve
much and use little. Not isolated: files that the user may read. Never judges a program's output.

Or it runs in a container of podman or docker, ended by the container's name. A container has no network, none of this
machine's files, a root that is read-only, a small folder in memory, an ordinary user without capabilities, and limits of
memory, processes, file sizes and, if wanted, CPU time. Its files go in through its standard input. The engine must run
on this machine, since CPU time and memory are read from /proc, too.
"""

import json
import os
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.isolation import kernel
from rlvr_exp.sandbox.isolation.kernel import Refused
from rlvr_exp.sandbox.isolation.process_tree import Processes

_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, {root!r}); from rlvr_exp.sandbox import tools; tools.supervise({order!r})"
_FACTS = ".isolation"
_FILE_BYTES, _OPEN_FILES = 64 << 20, 1024
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


class ConfinedProgram(Supervised):
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


def core_seconds() -> float:
    """The CPU seconds of this process and of all processes below it so far."""
    return usage_of(tree(os.getpid())).cpu_s


_FOLDER = "/rlvr-tool"
"""A container's folder. If the image had it, runc would keep the image's mode, so that the user could not write. For the same
reason no --workdir names it, for which docker makes the folder first."""
_READY, _GO = b"ready\n", b"go\n"
_ENGINE_S = 60
"""Seconds that the engine may take to answer a question; an idle engine takes 30 ms."""
_FIRST_UID, _UIDS = 20_000, 40_000
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
"""Podman hands them to its containers."""


@dataclass(frozen=True)
class Image:
    """An image that an engine holds."""

    engine: str
    """The path of podman or docker."""
    name: str
    id: str
    """Digest of its content. Containers start by it: a tag that moves during a run changes nothing."""


def find_image(name: str, build: str) -> Image:
    """The image, from the first of podman and docker that holds it. Starts no container, fetches nothing.

    Args:
        build: the command that makes the image.

    Raises:
        InputError: no engine is installed, or none holds the image; with the answer of each.
    """
    faults = []
    for engine in filter(None, map(shutil.which, ("podman", "docker"))):
        command = [engine, "image", "inspect", "--format", "{{.Id}}", name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_ENGINE_S, check=False
            )
        except subprocess.TimeoutExpired:
            faults.append(f"{Path(engine).name}: no answer within {_ENGINE_S} s")
            continue
        if done.returncode == 0 and done.stdout.strip():
            return Image(engine, name, done.stdout.strip())
        faults.append(f"{Path(engine).name}: {(done.stderr.strip().splitlines() or ['no answer'])[-1][:200]}")
    what, first = "no engine here holds the image", ""
    if not faults:
        what, first = "neither podman nor docker is on the PATH", "apt-get install podman, then "
    raise InputError(InputProblem("verifier.image", what, "; ".join([name, *faults]), remedy=first + build))


@dataclass(frozen=True)
class ContainerLimits:
    """Limits of one container on memory, and of each of its processes on CPU seconds (0: no limit)."""

    memory_mb: int
    cpu_s: int = 0
    pids: int = 256
    files_mb: int = 64


def run_words(
    image: Image, name: str, uid: int, environment: Mapping[str, str], limits: ContainerLimits
) -> tuple[str, ...]:
    """The engine's words that start a container, up to the command's own."""
    own = {**environment, "HOME": _FOLDER, "TMPDIR": _FOLDER}
    ulimits = {"core": 0, "nofile": 1024, "nproc": 1024, "fsize": limits.files_mb << 20}
    if limits.cpu_s:
        ulimits["cpu"] = limits.cpu_s
    return (
        *(image.engine, "run", "--rm", "--interactive", f"--name={name}", "--pull=never", "--log-driver=none"),
        *("--network=none", "--read-only", f"--tmpfs={_FOLDER}:rw,size={limits.files_mb}m,mode=1777"),
        *(f"--user={uid}:{uid}", "--cap-drop=all", "--security-opt=no-new-privileges"),
        *(f"--memory={limits.memory_mb}m", f"--memory-swap={limits.memory_mb}m", f"--pids-limit={limits.pids}"),
        *(f"--ulimit={name}={most}:{most}" for name, most in ulimits.items()),
        *(f"--env={name}={value}" for name, value in own.items()),
        *("--stop-timeout=0", "--entrypoint=sh", image.id),
    )


class Container(Supervised):
    """One command in a container of its own; as `ConfinedProgram`.

    Args:
        image: must have `sh` and `head`.
        command: the program and its words; it starts once its files are there.
        files: files put into the container's folder, by name.
        start_s: seconds that it may take to start.

    Raises:
        Lost: it does not start, or its processes are not on this machine.
    """

    def __init__(
        self,
        image: Image,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[str, bytes],
        limits: ContainerLimits,
        start_s: float = 120.0,
    ):
        self.name = f"rlvr-{os.urandom(8).hex()}"
        self._engine, self._inside = image.engine, 0
        folder = private_folder()
        self._errors = folder / "errors"
        # A user for each container: a limit of processes counts those of a user, wherever they are.
        words = run_words(
            image, self.name, _FIRST_UID + int.from_bytes(os.urandom(4), "big") % _UIDS, environment, limits
        )
        script = ["-c", _script({name: len(content) for name, content in files.items()}), "sh", *command]
        own = {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}
        with self._errors.open("wb") as errors:
            super().__init__([*words, *script], own, folder, trusted=True, cleanup=self._removal(), errors=errors)
        try:
            self._go(b"".join(files.values()), time.monotonic() + start_s)
        except (OSError, Lost) as fault:
            why = self._errors.read_text(errors="replace").strip()[-300:] or str(fault)
            self.end()
            raise Lost(f"the container does not start: {why}") from fault

    def usage(self) -> Usage:
        """The usage of all processes in the container."""
        return usage_of(tree(self._inside))

    def isolated(self) -> list[str]:
        """The kinds of isolation of the command, as the kernel reports them while it runs."""
        return self._isolated

    def end(self) -> None:
        """Kill the container by its name, and remove its remains.

        Raises:
            Lost: the engine does not answer.
        """
        removed = self._process.poll() in range(125)  # by the engine itself, whose own faults are 125 and above
        super().end()
        if removed:
            return
        try:
            subprocess.run(self._removal(), capture_output=True, timeout=_ENGINE_S, check=False)
        except subprocess.TimeoutExpired as slow:
            raise Lost(f"{self._engine} did not remove the container {self.name} within {_ENGINE_S} s") from slow

    def _removal(self) -> list[str]:
        return [self._engine, "rm", "--force", self.name]

    def _go(self, content: bytes, deadline: float) -> None:
        self.send(content)
        read = b""
        while read != _READY:
            poll = select.poll()
            poll.register(self.output.fileno(), select.POLLIN)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise Lost("not ready in time")
            data = self.output.read(len(_READY) - len(read))
            if not data:
                raise Lost("it ended before it was ready")
            read += data
        self._inside = self._pid()
        self._isolated = _isolation(self._inside)
        self.send(_GO)

    def _pid(self) -> int:
        """The process of this machine that is the container's first."""
        asked = [self._engine, "inspect", "--format", "{{.State.Pid}}", self.name]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=_ENGINE_S, check=False)
        except subprocess.TimeoutExpired as slow:
            raise Lost(f"no answer to {asked[1]} within {_ENGINE_S} s") from slow
        pid = int(done.stdout) if done.stdout.strip().isdecimal() else 0
        if _status(pid).get("NSpid", "").split()[-1:] != ["1"]:
            raise Lost("its processes are not on this machine, so that their time and memory cannot be read")
        return pid


def _script(sizes: Mapping[str, int]) -> str:
    """In its folder: read the files, say so, wait for the word to go, and become the command, without its error stream."""
    taken = f"cd {_FOLDER} && " + "".join(f"head -c {size} >{shlex.quote(name)} && " for name, size in sizes.items())
    return taken + f'echo {_READY.decode().strip()} && read -r go && exec "$@" 2>/dev/null'


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it is gone, or on another machine
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _isolation(pid: int) -> list[str]:
    """The kinds of isolation between the process and this one; a kind that cannot be read does not count."""
    status = _status(pid)
    kinds = {"files_hidden": "mnt", "ipc": "ipc", "network": "net", "processes": "pid"}
    found = []
    for what, kind in kinds.items():
        try:
            if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"):
                found.append(what)
        except OSError:
            continue
    if status.get("Uid", "").split()[:1] not in ([], [str(os.getuid())]):
        found.append("user_id")
    if status.get("Seccomp") == "2":
        found.append("system_calls")
    try:
        mounts = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        mounts = []
    roots = [fields for fields in map(str.split, mounts) if fields[4] == "/"]
    if roots and "ro" in roots[-1][5].split(","):
        found.append("files_read_only")
    return sorted(found)


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
