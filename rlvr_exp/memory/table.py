"""The estimate as a table: a row per line, a column per phase."""

from collections.abc import Iterator

from rlvr_exp.memory.phases import PHASES, Lines, reserve
from rlvr_exp.memory.workload import GIB, Workload

MIB = 2**20
RESERVE, RESERVE_OF_CPU = "context, fragmentation", "libraries, allocator"
TIGHT, ACCURATE = "tight", 0.9
"""A plan for a CPU is within a tenth of the measured peak (tests/benchmarks/test_memory_of_runs.py)."""
SAMPLING_ALONE = ("load", "rollout")
"""Phases of a run that trains nothing."""


def estimate(workload: Workload) -> dict[str, Lines]:
    """Bytes of every line of every phase of the run; the reserve is a line too."""
    names = PHASES if workload.trains else SAMPLING_ALONE
    lines = {name: PHASES[name](workload) for name in names}
    last = RESERVE_OF_CPU if workload.cpu else RESERVE
    return {name: {**found, last: reserve(found, workload)} for name, found in lines.items()}


def table(found: dict[str, Lines], device_gib: float) -> Iterator[str]:
    """In GiB, or in MiB where every line but the reserve is small; lines that are zero everywhere are left out."""
    names = dict.fromkeys(name for lines in found.values() for name, size in lines.items() if size)
    reserves = (RESERVE, RESERVE_OF_CPU)
    small = all(size < GIB for lines in found.values() for name, size in lines.items() if name not in reserves)
    unit, unit_name = (MIB, "MiB") if small else (GIB, "GiB")
    yield _row(unit_name, list(found))
    for name in sorted(names, key=reserves.__contains__):
        yield _row(name, [_number(lines.get(name, 0.0), unit) for lines in found.values()])
    totals = [sum(lines.values()) for lines in found.values()]
    yield _row("total", [_number(total, unit) for total in totals])
    verdicts = [fit(total, device_gib * GIB) for total in totals]
    yield _row(f"of {device_gib:g} GiB", verdicts)
    if TIGHT in verdicts:
        yield f"tight: within {1 - ACCURATE:.0%} of the memory; a peak can be that much higher than its plan"


def fit(total: float, room: float) -> str:
    """Whether a plan fits: "fits", "tight" or "TOO MUCH"."""
    return "fits" if total <= ACCURATE * room else TIGHT if total <= room else "TOO MUCH"


def _row(name: str, cells: list[str]) -> str:
    return f"{name:<24}" + "".join(f"{cell:>12}" for cell in cells)


def _number(size: float, unit: int) -> str:
    if not size:
        return "-"
    return f"{size / unit:.2f}" if size >= 0.1 * unit else f"{size / unit:.4f}"


def highest(workload: Workload) -> float:
    """Bytes of the phase that holds the most."""
    return max(sum(lines.values()) for lines in estimate(workload).values())


def too_large(found: dict[str, Lines], device_gib: float) -> tuple[str, str] | None:
    """The first phase that does not fit and its largest line."""
    for phase, lines in found.items():
        if sum(lines.values()) > device_gib * GIB:
            return phase, max(lines, key=lambda name: lines[name])
    return None
