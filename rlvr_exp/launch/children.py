"""The processes of a run: their environment, their start, and their common end.

PEFT, TRL and Accelerate import DeepSpeed, W&B and bitsandbytes if they are installed: a third of the seconds before a stage's
first line. A rank learns its identity from the names that torch, Accelerate and DeepSpeed read. Rank 0 writes the run directory.
Every other rank has a folder inside it, which is removed at the end, so that no file has two writers.

A child has two pipes. It sends progress as JSON lines on the first; those of rank 0 are read. The second is its lifeline: only
the parent has its write end, so the child notices the parent's death however it happens. The output of a child goes to a log
file. If one of several children fails, the others would wait for it forever and are killed. The links of a chain and the runs
of a study are processes of the complete program. Never imports torch.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import IO, Any, cast

import rlvr_exp
from rlvr_exp.config.load import resolved
from rlvr_exp.config.parallel import SHARDING, Parallel, first_alone
from rlvr_exp.config.schema import Config, reads, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.core.errors import DONE, FAULT, INTERRUPTED
from rlvr_exp.core.files import write_text
from rlvr_exp.launch.console import unread
from rlvr_exp.launch.machines import MachineEnd, Machines
from rlvr_exp.records.context import STATUS
from rlvr_exp.records.manifest import flat
from rlvr_exp.sandbox.isolation import kernel

SPINS = 3000
"""Iterations for which a compute thread waits for the next parallel operation before it sleeps: 40 to 150 microseconds."""


def child_environment(threads: int, processes: int = 1, online: bool = False) -> dict[str, str]:
    """The environment of a training process.

    Args:
        threads: compute threads. 0 uses the caller's OMP_NUM_THREADS, else a number chosen for the machine.
        processes: training processes that share the machine.
        online: the stage may use the network.
    """
    env = dict(os.environ)
    count = str(threads) if threads else env.get("OMP_NUM_THREADS", str(max(1, automatic_threads() // processes)))
    env.update(OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, PYTHONFAULTHANDLER="1")
    # Threads that spin for milliseconds occupy the verifiers' cores: on 2 cores a step took 20 s instead of 2. Threads that
    # never spin sleep between the small operations of a decoding step: SmolLM2 sampled a third slower.
    env.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0", GOMP_SPINCOUNT=str(SPINS))
    env.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Missing artifacts were reported before the start; a library that queries the network then only loses time.
    if not online:
        env.setdefault("HF_HUB_OFFLINE", "1")
    folders = [str(Path(rlvr_exp.__file__).parents[1]), *filter(None, [env.get("PYTHONPATH")])]
    env["PYTHONPATH"] = os.pathsep.join(folders)
    return env


def automatic_threads() -> int:
    """Physical cores minus one for the verifiers. Both of two cores: verifiers mostly work while the trainer waits."""
    cores = physical_cores()
    return cores if cores <= 2 else cores - 1


def physical_cores() -> int:
    """Physical cores that this process may use; hyper-threads of the same core are counted once."""
    siblings = set()
    for cpu in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(path.read_text() if path.is_file() else str(cpu))
    return len(siblings)


_OURS = "rlvr_exp."


def hide_unused_packages(config: Config, options: Mapping[str, Any]) -> None:
    """Make the import system take packages that the run does not use as absent, for the rest of this process.

    Args:
        options: the configuration's leaves by their dotted paths.
    """
    for package in unused_packages(config, options):
        cast(dict[str, Any], sys.modules).setdefault(package, None)


def unused_packages(config: Config, options: Mapping[str, Any]) -> Iterator[str]:
    """Names of optional packages. None if the stage does not train, or if the user's own class could import anything."""
    targets = [str(value) for key, value in options.items() if key.endswith("_target_")]
    if not trains(config.stage) or not all(target.startswith(_OURS) for target in targets):
        return
    if config.parallel.strategy not in SHARDING:
        yield "deepspeed"
    if not any(target.endswith(".WandB") for target in targets):
        yield "wandb"
    weights = [
        value for key, value in options.items() if key.endswith("path") and not key.startswith("data.") and value
    ]
    in_bits = any(value != "none" for key, value in options.items() if key.endswith("quantization"))
    if not weights and not in_bits and not any(target.endswith(".AdamW8bit") for target in targets):
        yield "bitsandbytes"  # Even without these options, a checkpoint may contain quantized weights.


@contextmanager
def inline_environment(checked: Checked) -> Iterator[None]:
    """The environment of a run inside the block. Environment and packages are restored afterwards."""
    before, modules = dict(os.environ), {*sys.modules}
    os.environ.update(
        child_environment(checked.config.parallel.threads, online=getattr(checked.config.prepare, "fetches", False))
    )
    if not every_device(checked.config):
        os.environ.update(first_alone(os.environ))
    hide_unused_packages(checked.config, flat(resolved(checked)))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        for name in [name for name in sys.modules if sys.modules[name] is None and name not in modules]:
            del sys.modules[name]


NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SCRATCH = ".ranks"
"""Folder of the run directory with the folders of the ranks above 0 while the run is in progress."""
HELD = ("config.yaml", "manifest.json")
"""Files of the run directory that a stage expects to find."""


def environments(
    parallel: Parallel, shared: Mapping[str, str], every_device: bool = False, interface: str = ""
) -> list[dict[str, str]]:
    """The environment of each process of this machine: the shared environment and its rank variables. A single process sees one
    device, unless its model is spread over `every_device`. `interface`: of the network to the other machines. By itself gloo
    takes the address of the host's name, which often is that of the machine alone.

    Inherited rank variables of another launcher or scheduler are dropped: a single process would wait for other ranks.
    """
    base = {name: value for name, value in shared.items() if name not in NAMES}
    if not parallel.distributed:
        return [base if every_device else base | first_alone(base)]
    port = parallel.port or free_port()
    if parallel.nodes == 1 and os.path.isdir("/sys/class/net/lo"):
        interface = "lo"  # The name of the host may have no address.
    if interface:
        base.setdefault("GLOO_SOCKET_IFNAME", interface)
    place = {
        "WORLD_SIZE": str(parallel.world),
        "LOCAL_WORLD_SIZE": str(parallel.processes),
        "MASTER_ADDR": parallel.address or "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    first = parallel.node * parallel.processes
    return [
        {**base, **place, "RANK": str(first + local), "LOCAL_RANK": str(local)} for local in range(parallel.processes)
    ]


def every_device(config: Config) -> bool:
    """Whether a single process sees every device: its model is spread over them, or it runs other runs, such as a study."""
    return not reads(config, "model") or bool(config.model.device_map)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def of_node(parallel: Parallel, run_directory: Path) -> Path:
    """The folder that this machine writes: the run directory on the first machine, else a folder inside it."""
    return run_directory / f"node_{parallel.node}" if parallel.node else run_directory


def rank() -> int:
    """The global rank of this process; 0 for a single process."""
    return int(os.environ.get("RANK", "0"))


@contextmanager
def own_directory(run_directory: Path, parallel: Parallel) -> Iterator[Path]:
    """The folder that this process writes: the run directory for rank 0, a temporary folder for the other ranks.

    All ranks read checkpoints from the run directory.

    Args:
        run_directory: this machine's part of it, as returned by `of_node`.
    """
    if rank() == 0:
        yield run_directory
        return
    own = run_directory / SCRATCH / str(rank())
    shutil.rmtree(own, ignore_errors=True)  # Left over if the parent was killed.
    own.mkdir(parents=True)
    for name in HELD:
        write_text(own / name, (run_directory / name).read_text(encoding="utf-8"))
    first = run_directory.parent if parallel.node else run_directory
    (own / "checkpoints").symlink_to((first / "checkpoints").absolute())
    yield own


def remove_scratch(run_directory: Path) -> None:
    """Remove the folders of the ranks above 0. The parent calls this after all ranks have ended."""
    shutil.rmtree(run_directory / SCRATCH, ignore_errors=True)


LOG = "log.txt"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that request a stop; a second signal kills the run."""
GRACE_FAULT_S, GRACE_S = 3.0, 30.0
"""Seconds that the other processes have after the first has ended: to log an error after a fault or a kill, else to finish
the last file and close a viewer."""

Child = subprocess.Popen[bytes]
Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Ended:
    """How a run's processes ended."""

    returncode: int
    """Exit code of the rank that ended the run. A negative code is the signal that killed it."""
    stop_requested: bool
    rank: int = 0
    """Local index of the process that failed first; 0 if none failed."""
    elsewhere: MachineEnd | None = None
    """The other machine that failed before any process of this one."""


def log_name(rank: int) -> str:
    """The file name of a local process's log."""
    return LOG if rank == 0 else f"log.rank{rank}.txt"


class ProcessGroup:
    """The ranks of a run on this machine. The first failure, here or on another machine, decides how the run ended. The other
    processes are killed after a grace period."""

    def __init__(self, machines: Machines) -> None:
        self._children: list[Child] = []
        self._machines, self._ends = machines, machines.ends
        """Indices of processes, and other machines, in the order in which they ended."""
        self.elsewhere: MachineEnd | None = None
        self._killed = False
        self._first_failure: int | None = None
        self._stop_requested = False
        self._watch: threading.Thread | None = None

    def add(self, child: Child) -> None:
        self._children.append(child)
        if self._stop_requested:
            child.send_signal(signal.SIGTERM)  # The stop was requested while processes were still being started.

    def watch(self) -> None:
        """Start waiting for the processes. Called once after all are added."""
        for place in range(len(self._children)):
            threading.Thread(target=self._wait_for, args=(place,), daemon=True).start()
        self._watch = threading.Thread(target=self._end_together, daemon=True)
        self._watch.start()

    def wait(self) -> None:
        """Return when all have ended."""
        if self._watch is not None:
            self._watch.join()

    @property
    def failed(self) -> int:
        """Index of the process that failed first; 0 if none failed."""
        return self._first_failure or 0

    @property
    def returncode(self) -> int:
        return self._children[self.failed].returncode

    def request_stop(self) -> None:
        self._stop_requested = True
        for child in self._children:
            child.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the living processes and wait until they have ended."""
        self._killed = True
        living = [child for child in self._children if child.poll() is None]
        for child in living:
            child.kill()
        for child in living:
            child.wait()

    def _wait_for(self, place: int) -> None:
        self._children[place].wait()
        self._ends.put(place)

    def _end_together(self) -> None:
        left, deadline = len(self._children), None
        while left:
            try:
                ended = self._ends.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except Empty:
                self.kill()
                deadline = None
                continue
            if isinstance(ended, MachineEnd):
                code, place = ended.code, ended.node
            else:
                left -= 1
                code, place = self._children[ended].returncode, ended
            if code != DONE and self._first_failure is None and self.elsewhere is None and not self._killed:
                self._note_failure(ended, code)
            if deadline is None and not self._killed and (code != DONE or place == 0):
                deadline = time.monotonic() + (GRACE_FAULT_S if code == FAULT or code < 0 else GRACE_S)

    def _note_failure(self, ended: int | MachineEnd, code: int) -> None:
        if not isinstance(ended, MachineEnd):
            self._first_failure = ended
            self._machines.tell(code if code in STATUS else FAULT)
            return
        if code != INTERRUPTED:  # All ranks agree on a stop.
            self.elsewhere = ended
        self._machines.pass_on(ended)


def run_children(
    module: str,
    arguments: Sequence[str],
    directory: Path,
    envs: Sequence[Mapping[str, str]],
    listen: Listener,
    machines: Machines | None = None,
) -> Ended:
    """Run `python -m module *arguments PROGRESS_FD LIFE_FD`, once for each environment, until all have ended.

    Both descriptors are numbers that the child inherits. The first signal that requests a stop is forwarded as SIGTERM. The
    second signal kills the children.

    Args:
        directory: folder of the logs, named by `log_name`.
        listen: called with each event of the first child.
        machines: the other machines of the run; None: there are none.
    """
    progress_in, progress_out = os.pipe()
    life_in, life_out = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    command = [sys.executable, "-m", module, *arguments]
    with ExitStack() as stack:
        stack.callback(os.close, life_in)
        stack.callback(os.close, life_out)
        events = stack.enter_context(open(progress_in, encoding="utf-8", errors="replace"))
        group = ProcessGroup(machines or Machines({}))
        stop_requested = stack.enter_context(_stopping(group))
        try:
            for rank, env in enumerate(envs):
                log = directory / log_name(rank)
                group.add(_start(command, log, env, nowhere if rank else progress_out, life_in))
        finally:
            os.close(progress_out)
            os.close(nowhere)
        group.watch()
        _listen(events, listen)
        group.wait()
        return Ended(group.returncode, bool(stop_requested), group.failed, group.elsewhere)


def _start(command: Sequence[str], log: Path, env: Mapping[str, str], progress: int, life: int) -> Child:
    with open(log, "ab") as out:
        return subprocess.Popen(
            [*command, str(progress), str(life)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            pass_fds=(progress, life),
            start_new_session=True,  # A terminal's Ctrl-C reaches the parent alone, which forwards it once.
        )


@contextmanager
def _stopping(group: ProcessGroup) -> Iterator[list[int]]:
    """Forward signals while the children run. Yields the list of received signals. No child is left running."""
    stop_requested: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stop_requested.append(number)
        if len(stop_requested) == 1:
            group.request_stop()  # Before the message: the terminal may be gone.
            with unread(sys.stderr), suppress(RuntimeError):  # Python refuses to print within a print.
                print("stopping after saving; press again to kill the run", file=sys.stderr, flush=True)
        else:
            group.kill()

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # As nohup sets it.
    previous = {number: signal.signal(number, stop) for number in heard}
    try:
        yield stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        group.kill()


def _listen(lines: Iterator[str], listen: Listener) -> None:
    for line in lines:
        if line.endswith("\n"):  # The last line of a child that was killed may be cut short.
            listen(json.loads(line))


PR_SET_PDEATHSIG = 1


def hold_lifeline(descriptor: int) -> None:
    """End this child process at once when its parent, which has the write end of the pipe, is gone.

    On Linux the kernel kills the child with its parent. A thread that reads the pipe does the same on every system, and if the
    parent was gone before the request to the kernel.
    """
    os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch_lifeline, args=(descriptor,), name="lifeline", daemon=True).start()


def _watch_lifeline(descriptor: int) -> None:
    while os.read(descriptor, 1):  # Nothing is written: read returns when the parent is gone.
        continue
    if os.getpgid(0) == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def start_program(
    words: Sequence[str],
    out: int | IO[str],
    env: Mapping[str, str] | None = None,
    cores: Collection[int] = (),
) -> "subprocess.Popen[str]":
    """Start `python -m rlvr_exp WORDS`. It dies with the thread that starts it, and receives no signals of the terminal.

    Args:
        out: takes its output and errors.
        env: None inherits the environment of this process.
        cores: allowed cores; empty: all cores of this process.
    """

    def prepare() -> None:
        kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)  # Two processes must not write one directory.
        if cores:
            os.sched_setaffinity(0, cores)

    return subprocess.Popen(
        [sys.executable, "-m", "rlvr_exp", *words],
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,  # Only its parent forwards signals of the terminal.
        preexec_fn=prepare,
    )
