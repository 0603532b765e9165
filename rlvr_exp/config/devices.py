"""The device of a run, found out without torch: the parent chooses settings by it. A plan may name another device."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path

from rlvr_exp.core import machine

DRIVER = Path("/proc/driver/nvidia/gpus")
QUERY = ("nvidia-smi", "--query-gpu=memory.total,compute_cap", "--format=csv,noheader,nounits")
BFLOAT16 = 8.0
"""NVIDIA's compute capability from which on bfloat16 is fast."""


@dataclass(frozen=True)
class Device:
    """The device that a policy is put on."""

    cuda: bool
    memory_gib: float
    """GiB that torch can use; for a CPU the machine's."""
    bfloat16: bool
    """Computes in bfloat16 at full speed."""


NAMED = {
    "t4": Device(True, 14.5, False),
    "v100_16gb": Device(True, 15.7, False),
    "v100_32gb": Device(True, 31.7, False),
    "rtx3090": Device(True, 23.5, True),
    "rtx4090": Device(True, 23.5, True),
    "rtx5090": Device(True, 31.3, True),
    "a10g": Device(True, 21.9, True),
    "l4": Device(True, 22.0, True),
    "l40s": Device(True, 44.3, True),
    "rtx_a6000": Device(True, 47.4, True),
    "a100_40gb": Device(True, 39.4, True),
    "a100_80gb": Device(True, 79.1, True),
    "h100_80gb": Device(True, 79.1, True),
    "h200": Device(True, 139.7, True),
    "b200": Device(True, 178.3, True),
}
"""GPUs that a plan can be made for. Their memory is what torch reports as total, which is less than what is sold."""
CPU = "cpu"
ASSUMED_GIB = NAMED["rtx5090"].memory_gib
"""Memory of a GPU that does not report it."""


def planned(here: Device, name: str, memory_gib: float) -> Device:
    """The device that a plan is made for.

    Args:
        here: the device of this machine.
        name: one of NAMED, or CPU; empty: the device of this machine, or a GPU with bfloat16 if only a memory is given.
        memory_gib: memory of the device if it is not the usual one; else 0.
    """
    if name == CPU:
        found = here if not here.cuda else _cpu()
    elif name in NAMED:
        found = NAMED[name]
    else:
        found = Device(True, memory_gib, True) if memory_gib and not here.cuda else here
    return replace(found, memory_gib=memory_gib or found.memory_gib)


def _cpu() -> Device:
    return Device(False, machine.total() / 2**30, False)


@cache
def device() -> Device:
    """The first NVIDIA device that torch would use; else the CPU."""
    if not _torch_has_cuda() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or not DRIVER.is_dir():
        return _cpu()
    with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        found = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True).stdout
        memory, capability = map(float, found.splitlines()[0].split(","))
        return Device(True, memory / 1024, capability >= BFLOAT16)
    return Device(True, ASSUMED_GIB, True)


def first_alone(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that leaves a process the first of several NVIDIA devices, since trainers take all that they see; nothing
    where there are not several."""
    several = DRIVER.is_dir() and len(list(DRIVER.iterdir())) > 1
    visible = environment.get("CUDA_VISIBLE_DEVICES", "0" if several else "")
    return {"CUDA_VISIBLE_DEVICES": visible.split(",")[0]} if visible else {}


def _torch_has_cuda() -> bool:
    with suppress(metadata.PackageNotFoundError):
        return not metadata.version("torch").endswith("+cpu")
    return False
