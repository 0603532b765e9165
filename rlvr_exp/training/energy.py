"""The energy that a machine reports: packages of the processor by their counters (RAPL), GPUs by their power draw."""

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import torch

COUNTERS = Path("/sys/class/powercap")


class EnergyMeter:
    """Energy since it was made. GPUs are sampled by `sample`, while they work; counters are read at both ends.

    Args:
        counters: folder of the kernel's powercap zones.
        now: a clock in seconds.
    """

    def __init__(self, counters: Path = COUNTERS, now: Callable[[], float] = time.perf_counter):
        self._zones, self._now = sorted(counters.glob("*rapl:?")), now
        self._start, self._first = now(), self._read()
        self._watts: list[float] = []

    def sample(self) -> None:
        """Read the power of every GPU."""
        if (watts := gpu_watts()) is not None:
            self._watts.append(watts)

    def kilowatts(self) -> dict[str, float]:
        """Mean power by part, in kW; only parts that can be read."""
        seconds, found = self._now() - self._start, {}
        last = self._read()
        if self._first is not None and last is not None and seconds > 0:
            used = [after - before for before, after in zip(self._first, last, strict=True)]
            if min(used) >= 0:  # A counter that has started over says nothing.
                found["processor"] = sum(used) / 1e6 / seconds / 1e3
        if self._watts:
            found["GPUs"] = fmean(self._watts) / 1e3
        return found

    def _read(self) -> list[int] | None:
        """Microjoules of each package; None where they cannot be read, as for anyone but root."""
        try:
            return [int((zone / "energy_uj").read_text()) for zone in self._zones] or None
        except (OSError, ValueError):
            return None


def gpu_watts() -> float | None:
    """The power of all GPUs together; None without one, or without NVIDIA's library (`pip install nvidia-ml-py`)."""
    if not torch.cuda.is_available() or find_spec("pynvml") is None:
        return None
    try:
        return sum(torch.cuda.power_draw(index) for index in range(torch.cuda.device_count())) / 1e3
    except (RuntimeError, import_module("pynvml").NVMLError):  # A device, or a share of one, that tells no power.
        return None
