"""Early warning: memory, open files or disk that will run out before the run ends.

Measures this process each step, and forecasts by the median of all pairwise slopes (Theil 1950, Sen 1968), which a few
outlying steps do not move. Growth that has stopped gives no warning: the smaller of the slopes over the complete window
and over its later half counts. Warns once per resource; never stops a run.
"""

import os
import resource
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core import machine
from rlvr_exp.core.statistics import slope

MB = 1 << 20


@dataclass(frozen=True)
class Use:
    """One resource at one moment, in one unit."""

    used: float
    left: float
    """What remains until it is used up."""


class ResourceTrends:
    """The use of a process's resources over its last steps.

    Args:
        directory: of the run; its disk is watched.
        window: steps that a slope is taken over; nothing is forecast before there are so many, and never where it is 0.
    """

    def __init__(self, directory: Path, window: int):
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
