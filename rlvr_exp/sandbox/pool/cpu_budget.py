"""The number of workers for this process: the cores that it may really use."""

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def usable() -> int:
    """Cores by affinity and by the control group's quota, shared evenly by the ranks on this machine; at least 1."""
    cores = min(len(os.sched_getaffinity(0)), math.ceil(_quota(_CGROUPS)))
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores // max(1, int(ranks) if ranks.isdigit() else 1))


def _quota(root: Path) -> float:
    """Cores' worth of CPU time that the control group allows; a large number where it sets none."""
    places = [root, *(root / group.lstrip("/") for group in _groups())]
    return max(1.0, min((quota for place in places if (quota := _quota_of(place)) is not None), default=1e6))


def _quota_of(place: Path) -> float | None:
    try:
        quota, period = (place / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (place / "cpu.cfs_quota_us").read_text().strip()
            period = (place / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _groups() -> list[str]:
    """This process's group, and those above it, in both versions' layouts."""
    try:
        rows = [line.strip().split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    found = []
    for _, controllers, path in rows:
        base = "" if not controllers else "cpu" if "cpu" in controllers.split(",") else None
        if base is None:
            continue
        parts = [part for part in path.split("/") if part]
        found += ["/".join((base, *parts[: depth + 1])) for depth in range(len(parts))] + [base]
    return found
