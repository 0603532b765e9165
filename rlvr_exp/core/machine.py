"""Memory of this machine, in bytes. The limit of the process's control group counts if it is lower."""

import os
from collections.abc import Iterator
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By controller (version 2 has one hierarchy for all): the limit, the use, and the part of the use that is reclaimable cache."""


def total() -> int:
    """Memory that this process may use if nothing else runs."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *(limit for limit, _ in _limits())])


def available() -> int:
    """Memory that this process can allocate now without swapping."""
    lines = MEMINFO.read_text(encoding="utf-8").splitlines() if MEMINFO.is_file() else []  # A Mac has none.
    free = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")), total())
    return max(0, min([free, *(limit - used for limit, used in _limits())]))


def _limits() -> Iterator[tuple[int, int]]:
    """(limit, use without reclaimable cache) of this process's control group and of those above it that have a limit."""
    for place, (most, current, cache) in _groups():
        try:
            limit, used = ((place / name).read_text(encoding="utf-8").strip() for name in (most, current))
            rows = dict(line.split() for line in (place / "memory.stat").read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError):  # The group is of another version, or its files are not mounted here.
            continue
        if limit.isdigit() and used.isdigit():
            yield int(limit), int(used) - int(rows.get(cache, 0))


def _groups() -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The folders that may hold the limits, and their files' names. In a container the own group is the mount's root."""
    try:
        rows = [line.strip().split(":", 2) for line in OWN_GROUPS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return
    for _, controllers, path in rows:
        controller = "memory" if "memory" in controllers.split(",") else controllers
        if controller in FILES:
            root = GROUPS / controller
            own = root / path.lstrip("/")
            yield from ((place, FILES[controller]) for place in (own, *own.parents) if place.is_relative_to(root))
