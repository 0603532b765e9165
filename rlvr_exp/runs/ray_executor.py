"""The executor of Ray: a command is a task with its resources, and a lost node means that the task starts again elsewhere.

A run resumes exactly from its newest checkpoint. A node that shares the study's file system works in the study's folder. Any other
node works in a scratch folder, and copies new files to a keeper, an actor on the machine of the study: while the command runs, so
that a task that starts again fetches the last checkpoint from there, and at its end.

Files are copied in an order that a crash at any time leaves sound: a checkpoint follows the logs of the steps before it.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from rlvr_exp.config import study as options
from rlvr_exp.core.errors import FAULT, INTERRUPTED, InputError, InputProblem
from rlvr_exp.core.ray_cluster import join_cluster
from rlvr_exp.launch.children import start_program
from rlvr_exp.runs.executors import Command, Executor, environment

TOKEN = ".ray_token"
"""File of the study's folder by which a task notices that its node shares the file system."""
CHECKPOINTS = "checkpoints"
POLL_S, COPY_S = 0.5, 5.0
"""Seconds between two looks at a command, and between two copies of its new files."""
KILL_S = 10.0
CHUNK = 8 << 20
Files = dict[str, tuple[int, int, str]]
"""Size, time of the last change and target of a link of each file, by its path."""


def files_below(root: Path, folder: str = "") -> Files:
    """The files below a folder of `root`, or that file alone, without hidden ones, which are unfinished."""
    found: Files = {}
    start = root / folder
    single = [start] if start.is_file() else []
    for path in single or sorted(start.rglob("*")):
        name = path.relative_to(root)
        if any(part.startswith(".") for part in name.parts) or (path.is_dir() and not path.is_symlink()):
            continue
        with suppress(FileNotFoundError):
            about = path.lstat()
            found[str(name)] = about.st_size, about.st_mtime_ns, os.readlink(path) if path.is_symlink() else ""
    return found


class Keeper:
    """The actor on the machine of the study: its files, and the requests to stop.

    Args:
        root: the study's folder.
    """

    def __init__(self, root: str):
        self._root = Path(root)
        self._attempts: dict[str, int] = {}
        self._stopped: set[str] = set()
        self._abandoned = False

    def begin(self, name: str) -> int:
        """The number of this attempt to run a command, from 1; 0 if it was stopped."""
        if self._abandoned or name in self._stopped:
            return 0
        self._attempts[name] = self._attempts.get(name, 0) + 1
        return self._attempts[name]

    def stop(self, name: str) -> bool:
        """Stop a command; whether it has begun."""
        self._stopped.add(name)
        return name in self._attempts

    def abandon(self) -> None:
        """Kill all commands."""
        self._abandoned = True

    def state(self, name: str, attempt: int) -> str:
        """run, stop, or kill: the study is over, or a later attempt runs elsewhere."""
        if self._abandoned or self._attempts[name] != attempt:
            return "kill"
        return "stop" if name in self._stopped else "run"

    def listing(self, folder: str) -> Files:
        return files_below(self._root, folder)

    def read(self, path: str, offset: int) -> bytes:
        with open(self._root / path, "rb") as file:
            file.seek(offset)
            return file.read(CHUNK)

    def write(self, name: str, attempt: int, path: str, offset: int, data: bytes, last: bool) -> None:
        """Write a part of a file, which appears with its last part. Raises RuntimeError for a superseded attempt."""
        part = self._checked(name, attempt, path)
        with open(part, "r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)
        if last:
            os.replace(part, self._root / path)

    def link(self, name: str, attempt: int, path: str, target: str) -> None:
        part = self._checked(name, attempt, path)
        part.unlink(missing_ok=True)
        part.symlink_to(target)
        os.replace(part, self._root / path)

    def remove_others(self, name: str, attempt: int, folder: str, kept: Sequence[str]) -> None:
        """Remove the files of a folder that its node no longer has."""
        self._checked(name, attempt, folder)
        for path in self.listing(folder).keys() - {*kept}:
            (self._root / path).unlink()
            with suppress(OSError):  # Other files are left.
                (self._root / path).parent.rmdir()

    def _checked(self, name: str, attempt: int, path: str) -> Path:
        """The name of the unfinished file."""
        if self._attempts[name] != attempt:
            raise RuntimeError(f"{name} runs on another node")
        place = self._root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.with_name(f".{place.name}.part")


@dataclass(frozen=True)
class Task:
    """A command for some node.

    Args:
        root: the study's folder, as the words name it, and as an absolute path.
        here: the working directory of the study.
    """

    name: str
    words: tuple[str, ...]
    printed: Path
    root: str
    absolute: str
    token: str
    here: str
    path: str
    """Further folders of modules, if they exist on the node."""
    address: str


def run_task(task: Task, keeper: Any) -> int:
    """Run a command on this node and return its exit code."""
    import ray

    attempt = ray.get(keeper.begin.remote(task.name))
    if not attempt:
        return INTERRUPTED
    words = list(task.words)
    if attempt > 1 and not any(word.startswith("run.resume=") for word in words):
        words.append("run.resume=auto")
    token = Path(task.absolute) / TOKEN
    if token.is_file() and token.read_text() == task.token:
        with _working_directory(Path(task.here)):
            return _run(task, words, task.printed, attempt, keeper, None)
    with tempfile.TemporaryDirectory(prefix="rlvr-") as folder, _working_directory(Path(folder)):
        copy = Copy(task, attempt, keeper, Path(folder))
        words = [word.replace(task.root, folder) for word in words]
        printed = Path(folder) / task.printed.relative_to(task.root)
        return _run(task, words, printed, attempt, keeper, copy)


@contextmanager
def _working_directory(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(task: Task, words: Sequence[str], printed: Path, attempt: int, keeper: Any, copy: "Copy | None") -> int:
    import ray

    env = environment(task.path) | {"RAY_ADDRESS": task.address}
    if copy is not None:
        copy.fetch()
    printed.parent.mkdir(parents=True, exist_ok=True)
    with open(printed, "a", encoding="utf-8") as out:
        process = start_program(words, out, env)
    try:
        asked, copy_at = False, time.monotonic() + COPY_S
        while process.poll() is None:
            state = ray.get(keeper.state.remote(task.name, attempt))
            if state == "kill":
                return INTERRUPTED
            if state == "stop" and not asked:
                process.send_signal(signal.SIGTERM)
                asked = True
            if copy is not None and time.monotonic() >= copy_at:
                copy.push()
                copy_at = time.monotonic() + COPY_S
            time.sleep(POLL_S)
        if copy is not None:
            copy.push()
        return process.returncode
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


class Copy:
    """The copy of a run in a scratch folder, with the files of the study that its words name.

    Args:
        folder: the scratch folder, in place of the study's.
    """

    def __init__(self, task: Task, attempt: int, keeper: Any, folder: Path):
        self._task, self._attempt, self._keeper, self._folder = task, attempt, keeper, folder
        self._known: Files = {}
        """Files as both sides have them."""
        below = f"{task.root}/"
        named = [word.partition("=")[2].strip("\"'") for word in task.words]
        self._named = [value.removeprefix(below) for value in named if value.startswith(below)]
        own = [word for word in task.words if word.startswith("run.dir=")]
        self._run = own[-1].partition("=")[2].strip("\"'").removeprefix(below) if own else ""

    def fetch(self) -> None:
        """Fetch what the words name: the run of an earlier attempt, shared measurements, checkpoints of other runs."""
        for folder in {*self._named, str(self._task.printed.relative_to(self._task.root))}:
            for path, (size, _, target) in self._get("listing", folder).items():
                place = self._folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                if target:
                    place.symlink_to(target)
                    continue
                with open(place, "wb") as file:
                    while file.tell() < size and (data := self._get("read", path, file.tell())):
                        file.write(data)
        self._known = files_below(self._folder)

    def push(self) -> None:
        """Copy new and changed files to the study. Checkpoints that were complete before the logs were read come last, and links to
        them after them."""
        before, found = files_below(self._folder), files_below(self._folder)
        saved = {path for path in found if CHECKPOINTS in Path(path).parts}
        logs = [path for path in found if path not in saved]
        files = [path for path in saved if before.get(path) == found[path]]
        for path in (*logs, *sorted(files, key=lambda one: bool(found[one][2]))):
            if self._known.get(path) != found[path]:
                with suppress(FileNotFoundError):  # A checkpoint that was removed meanwhile.
                    self._send(path, found[path][2])
                    self._known[path] = found[path]
        if self._run:
            kept = [path for path in found if path in self._known]
            self._get("remove_others", self._task.name, self._attempt, self._run, kept)

    def _send(self, path: str, target: str) -> None:
        own = (self._task.name, self._attempt, path)
        if target:
            self._get("link", *own, target)
            return
        with open(self._folder / path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            while True:
                offset = file.tell()
                data = file.read(min(CHUNK, size - offset))
                last = not data or file.tell() >= size
                self._get("write", *own, offset, data, last)
                if last:
                    return

    def _get(self, method: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self._keeper, method).remote(*arguments))


@dataclass
class RayTask:
    """A command that was handed to the cluster."""

    name: str
    reference: Any
    printed: Path
    dropped: bool = False
    """Stopped before it began. Once it has resources it ends at once, for which nobody waits."""


class Ray(Executor[RayTask], options.Ray):
    """Hands `jobs` commands at a time to a cluster."""

    every_s = 0.5

    def begin(self, root: Path) -> str:
        """Raises InputError: Ray is not installed, no cluster answers, or no node has the resources of a command."""
        self._address = join_cluster("executor.address", self.address)
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._root = ray, root
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        wanted = {"CPU": self.num_cpus, "GPU": self.num_gpus, **self.resources}
        if not any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
            known = "; ".join(_shown(node) for node in nodes)
            remedy = "set executor.num_cpus, executor.num_gpus and executor.resources to what a node has"
            raise InputError(
                InputProblem("executor", "no node of the cluster has so much", _shown(wanted), known, "", remedy)
            )
        self._token = uuid4().hex
        root.mkdir(parents=True, exist_ok=True)
        (root / TOKEN).write_text(self._token)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        keeper = ray.remote(Keeper).options(num_cpus=0, scheduling_strategy=here)
        self._keeper = keeper.remote(str(root.absolute()))
        self._task = ray.remote(run_task).options(
            num_cpus=self.num_cpus, num_gpus=self.num_gpus, resources=self.resources, max_retries=self.retries
        )
        self._started = 0
        return f"ray: {len(nodes)} nodes at {self._address}"

    def start(self, command: Command, slot: int) -> RayTask:
        self._started += 1
        name = f"{self._started}"
        task = Task(
            name,
            command.words,
            command.printed,
            str(self._root),
            str(self._root.absolute()),
            self._token,
            str(Path.cwd()),
            os.environ.get("PYTHONPATH", ""),
            self._address,
        )
        return RayTask(name, self._task.remote(task, self._keeper), command.printed)

    def code_of(self, running: RayTask) -> int | None:
        if running.dropped:
            return INTERRUPTED
        if not self._ray.wait([running.reference], timeout=0)[0]:
            return None
        try:
            return int(self._ray.get(running.reference))
        except self._ray.exceptions.RayError as fault:
            running.printed.parent.mkdir(parents=True, exist_ok=True)
            with open(running.printed, "a", encoding="utf-8") as out:
                out.write(f"{fault}\n")
            return FAULT

    def stop(self, running: RayTask) -> None:
        # ray.cancel would lose a race with the start of the task, and end this process.
        running.dropped = not self._ray.get(self._keeper.stop.remote(running.name))

    def wait(self, running: Sequence[RayTask]) -> None:
        if references := [one.reference for one in running if not one.dropped]:
            self._ray.wait(references, num_returns=len(references))

    def abandon(self, running: Sequence[RayTask]) -> None:
        if references := [one.reference for one in running if not one.dropped]:
            self._keeper.abandon.remote()
            self._ray.wait(references, num_returns=len(references), timeout=KILL_S)
        (self._root / TOKEN).unlink(missing_ok=True)


def _shown(resources: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {amount:g}" for name, amount in resources.items() if ":" not in name and "memory" not in name
    )
