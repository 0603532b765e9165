"""Programs in containers of podman or docker: started confined, measured, ended by the container's name.

A container has no network, none of this machine's files, a root that is read-only, a small folder in memory, an
ordinary user without capabilities, and limits of memory, processes, file sizes and, if wanted, CPU time. Its files
go in through its standard input. CPU time and memory are read from this machine's /proc, as for programs outside, so
the engine must run here. Never judges a program's output.
"""

import os
import secrets
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.tools import Lost, Supervised, Usage, private_folder, tree, usage_of

_FOLDER = "/work"
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
        *(f"--workdir={_FOLDER}", f"--user={uid}:{uid}", "--cap-drop=all", "--security-opt=no-new-privileges"),
        *(f"--memory={limits.memory_mb}m", f"--memory-swap={limits.memory_mb}m", f"--pids-limit={limits.pids}"),
        *(f"--ulimit={name}={most}:{most}" for name, most in ulimits.items()),
        *(f"--env={name}={value}" for name, value in own.items()),
        *("--stop-timeout=0", "--entrypoint=sh", image.id),
    )


class Container(Supervised):
    """One command in a container of its own; as `rlvr_exp.sandbox.tools.Program`.

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
        self.name = f"rlvr-{secrets.token_hex(8)}"
        self._engine, self._inside = image.engine, 0
        folder = private_folder()
        self._errors = folder / "errors"
        # A user for each container: a limit of processes counts those of a user, wherever they are.
        words = run_words(image, self.name, _FIRST_UID + secrets.randbelow(_UIDS), environment, limits)
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
    """Read the files, say so, wait for the word to go, and become the command, whose error stream is dropped."""
    taken = "".join(f"head -c {size} >{shlex.quote(name)} && " for name, size in sizes.items())
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
