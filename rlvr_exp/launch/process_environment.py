"""The environment of a process that runs a stage: threads, waiting, and optional packages that it does not import.

PEFT, TRL and Accelerate import DeepSpeed, W&B and bitsandbytes wherever they find them: a third of the seconds before a
stage's first line. A run in the parent's own process gets the same, before anything imports torch, which reads its
environment once. Never imports torch.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import rlvr_exp
from rlvr_exp.config.load import resolved
from rlvr_exp.config.parallel import SHARDING, first_alone
from rlvr_exp.config.schema import Config, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.launch.ranks import every_device
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
