"""Which accelerator the children of a run will see, found out without torch: the parent chooses settings by it."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
QUERY = ("nvidia-smi", "--query-gpu=memory.total,compute_cap", "--format=csv,noheader,nounits")
BFLOAT16 = 8.0
"""NVIDIA's compute capability from which on bfloat16 is fast."""


@dataclass(frozen=True)
class Device:
    """The device that a policy is put on."""

    cuda: bool
    memory_gib: float
    """Of the device; for a CPU the machine's."""
    bfloat16: bool
    """Computes in bfloat16 at full speed."""


@cache
def device() -> Device:
    """The first NVIDIA device that torch would use; else the CPU."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if not _torch_has_cuda() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or not DRIVER.is_dir():
        return Device(False, machine, False)
    with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        found = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True).stdout
        memory, capability = map(float, found.splitlines()[0].split(","))
        return Device(True, memory / 1024, capability >= BFLOAT16)
    return Device(True, 0.0, True)  # There, but it does not say what it is.


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
