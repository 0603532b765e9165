"""Resources that a run uses: memory, open files and disk with a forecast, seconds of each part of a step, and energy."""

import os
import resource
import shutil
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import torch

from rlvr_exp.core import machine
from rlvr_exp.core.statistics import slope
from rlvr_exp.rollouts.distributed import any_rank

MB = 1 << 20


@dataclass(frozen=True)
class Use:
    """One resource at one moment, in one unit."""

    used: float
    left: float
    """What remains until it is used up."""


class ResourceTrends:
    """The use of a process's resources over its last steps. Warns before memory, open files or disk run out.

    The forecast is the median of all pairwise slopes (Theil 1950, Sen 1968), which a few outlying steps do not move. Growth
    that has stopped gives no warning: the smaller of the slopes over the complete window and over its later half counts.
    Warns once for each resource and never stops a run.

    Args:
        directory: of the run; its disk is watched.
        window: steps that a slope is taken over; nothing is forecast before there are so many, and never where it is 0.
    """

    def __init__(self, directory: Path, window: int = 40):
        self._directory, self._window = directory, window
        self._seen: dict[str, deque[float]] = {}
        self._warned: set[str] = set()
        self._row: dict[str, float] = {}

    def step(self, done: int, total: int) -> list[str]:
        """Measure after a step; returns a line for each resource that would run out, once per resource and run."""
        return self.take(measure(self._directory), done, total)

    def take(self, uses: Mapping[str, Use], done: int, total: int) -> list[str]:
        """The same for measurements taken elsewhere."""
        self._row = {f"system/{NAMES[name]}": use.used for name, use in uses.items()}
        warnings = []
        for name, use in uses.items():
            seen = self._seen.setdefault(name, deque(maxlen=max(1, self._window)))
            seen.append(use.used)
            growth = sustained(seen) if 0 < self._window <= len(seen) else 0.0
            if growth > 0 and use.left < growth * (total - done):
                self._row[f"system/steps_left/{name}"] = use.left / growth
                if name not in self._warned:
                    self._warned.add(name)
                    warnings.append(_line(name, use, growth, done, total))
        return warnings

    def metrics(self) -> dict[str, float]:
        """Metrics of the last step: what is used, and the remaining steps of a resource that would run out."""
        return self._row


NAMES = {"memory": "rss_mb", "files": "open_files", "disk": "disk_used_mb"}
"""Resource -> its metric."""
REMEDIES = {
    "memory": "look for what keeps growing, or give it a machine with more, and resume from a checkpoint there",
    "files": "raise `ulimit -n`, and look for what is opened and never closed",
    "disk": "make room, or lower run.checkpoint.keep or raise run.checkpoint.every_steps",
}
UNITS = {"memory": "MB", "files": "open files", "disk": "MB"}


def _line(name: str, use: Use, growth: float, done: int, total: int) -> str:
    steps = use.left / growth
    return (
        f"warning: {name} will be used up in about {steps:.0f} steps, at step {done + steps:.0f} of {total}: "
        f"{use.used:.0f} {UNITS[name]} are used, {use.left:.0f} are left, {growth:.3g} more a step. Remedy: "
        f"{REMEDIES[name]}"
    )


def sustained(values: Sequence[float]) -> float:
    """Growth per step that has been sustained to the end of the window."""
    values = list(values)
    return min(slope(values), slope(values[len(values) // 2 :]))


def measure(directory: Path) -> dict[str, Use]:
    """The current use of this process, and of the disk that holds a folder."""
    disk = shutil.disk_usage(directory)
    files, most = len(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory": Use(pages * os.sysconf("SC_PAGE_SIZE") / MB, machine.available() / MB),
        "files": Use(files, (most if most != resource.RLIM_INFINITY else float("inf")) - files),
        "disk": Use(disk.used / MB, disk.free / MB),
    }


UPDATING, MEASURING, SAVING = "update", "measure", "save"
FEWEST = 2
"""Steps of a trial that count."""


class StepClock:
    """
    Args:
        limit_s: seconds of updates, after the first, which warms up, that end a trial; 0: none.
        now: a clock that never goes back, in seconds.
        after: called after each part, such as to read a meter.
    """

    def __init__(
        self,
        limit_s: float = 0.0,
        now: Callable[[], float] = time.perf_counter,
        after: Callable[[], None] = lambda: None,
    ):
        self._limit, self._now, self._after = limit_s, now, after
        self.seconds: dict[str, list[float]] = defaultdict(list)
        """Of every time that a part was done, by its name."""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        start = self._now()
        yield
        self.seconds[part].append(self._now() - start)
        self._after()

    @property
    def counted(self) -> list[float]:
        """Seconds of the updates after the first; of a run of one step, of that."""
        updates = self.seconds[UPDATING]
        return updates[1:] or updates

    def over(self) -> bool:
        """Whether a trial has seen enough; the same on all ranks, which all ask."""
        if not self._limit:
            return False
        return any_rank(len(self.seconds[UPDATING]) > FEWEST and sum(self.counted) >= self._limit)


COUNTERS = Path("/sys/class/powercap")


class EnergyMeter:
    """Energy since it was created: packages of the processor by their counters (RAPL), GPUs by their power draw.

    `sample` reads the power of GPUs while they work; the counters are read at both ends.

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
