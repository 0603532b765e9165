"""The processes that train together, as their parent starts them and as each of them sees itself.

A rank learns its identity from its environment (the names that torch, Accelerate and DeepSpeed read). Rank 0 writes the
run directory; every other rank gets a folder of its own inside it, which is removed at the end of the run, so that no
file has two writers. They join in rlvr_exp.training.torch_distributed. Never imports torch: the parent reads this file.
"""

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rlvr_exp.config.parallel import Parallel, first_alone
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.files import write_text

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
