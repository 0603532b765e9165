"""The environment of the processes that run a stage: threads, ranks and folders, and optional packages that are not imported.

PEFT, TRL and Accelerate import DeepSpeed, W&B and bitsandbytes if they are installed: a third of the seconds before a stage's
first line. A rank learns its identity from the names that torch, Accelerate and DeepSpeed read. Rank 0 writes the run directory.
Every other rank has a folder inside it, which is removed at the end, so that no file has two writers. Never imports torch.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import rlvr_exp
from rlvr_exp.config.load import resolved
from rlvr_exp.config.parallel import SHARDING, Parallel, first_alone
from rlvr_exp.config.schema import Config, reads, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.core.files import write_text
from rlvr_exp.records.fingerprint import flat

SPINS = 3000
"""Iterations for which a compute thread waits for the next parallel operation before it sleeps: 40 to 150 microseconds."""


def child_environment(threads: int, processes: int = 1) -> dict[str, str]:
    """The environment of a training process.

    Args:
        threads: compute threads; 0: the caller's OMP_NUM_THREADS, else a number chosen for the machine.
        processes: training processes that share the machine.
    """
    env = dict(os.environ)
    count = str(threads) if threads else env.get("OMP_NUM_THREADS", str(max(1, automatic_threads() // processes)))
    env.update(OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, PYTHONFAULTHANDLER="1")
    # Threads that spin for milliseconds take the verifiers' cores: on 2 cores a step took 20 s instead of 2. Threads that never
    # spin sleep between the hundreds of small operations of a decoding step: SmolLM2 sampled a third slower.
    env.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0", GOMP_SPINCOUNT=str(SPINS))
    env.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Missing artifacts were reported before the start; a library that queries the network then only loses time.
    env.setdefault("HF_HUB_OFFLINE", "1")
    folders = [str(Path(rlvr_exp.__file__).parents[1]), *filter(None, [env.get("PYTHONPATH")])]
    env["PYTHONPATH"] = os.pathsep.join(folders)
    return env


def automatic_threads() -> int:
    """Physical cores minus one for the verifiers; both of two, since verifiers mostly work while the trainer waits."""
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
    """Names of optional packages; none where a stage does not train, or a class of the user's own could import anything."""
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
        yield "bitsandbytes"  # A checkpoint may hold quantized weights, whatever the options say.


@contextmanager
def inline_environment(checked: Checked) -> Iterator[None]:
    """For a run inside the block; environment and packages are as before behind it."""
    before, modules = dict(os.environ), {*sys.modules}
    os.environ.update(child_environment(checked.config.parallel.threads))
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
"""Folder of the run directory that holds those of the ranks above 0 while the run is in progress."""
HELD = ("config.yaml", "manifest.json")
"""Files of the run directory that a stage expects to find."""


def environments(parallel: Parallel, shared: Mapping[str, str], every_device: bool = False) -> list[dict[str, str]]:
    """The environment of each process of this machine: the shared environment plus the process's rank variables. A single
    process sees one device, unless its model is spread over `every_device`.

    Rank variables inherited from the parent's own launcher or scheduler are dropped: a single process that found them
    would wait for others.
    """
    base = {name: value for name, value in shared.items() if name not in NAMES}
    if not parallel.distributed:
        return [base if every_device else base | first_alone(base)]
    port = parallel.port or free_port()
    if parallel.nodes == 1 and os.path.isdir("/sys/class/net/lo"):
        base.setdefault("GLOO_SOCKET_IFNAME", "lo")  # A host whose own name has no address cannot be reached by it.
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
    """Whether a single process sees every device: where its model is spread over them, or it has none itself, such as a study,
    whose runs do."""
    return not reads(config, "model") or bool(config.model.device_map)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def of_node(parallel: Parallel, run_directory: Path) -> Path:
    """Where this machine writes: the run directory itself for the first, a folder inside it for every other."""
    return run_directory / f"node_{parallel.node}" if parallel.node else run_directory


def rank() -> int:
    """This process's global rank; 0 where it is alone."""
    return int(os.environ.get("RANK", "0"))


@contextmanager
def own_directory(run_directory: Path, parallel: Parallel) -> Iterator[Path]:
    """Where this process writes: the run directory for rank 0, a temporary folder for the other ranks.

    All ranks read checkpoints from the run directory.

    Args:
        run_directory: this machine's part of it, as returned by `of_node`.
    """
    if rank() == 0:
        yield run_directory
        return
    own = run_directory / SCRATCH / str(rank())
    shutil.rmtree(own, ignore_errors=True)  # A parent that was killed has not removed it.
    own.mkdir(parents=True)
    for name in HELD:
        write_text(own / name, (run_directory / name).read_text(encoding="utf-8"))
    first = run_directory.parent if parallel.node else run_directory
    (own / "checkpoints").symlink_to((first / "checkpoints").absolute())
    yield own


def remove_scratch(run_directory: Path) -> None:
    """Remove what the ranks above 0 wrote; called by the parent once all of them have ended."""
    shutil.rmtree(run_directory / SCRATCH, ignore_errors=True)
