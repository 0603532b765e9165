"""The estimate in words: a table of phases, what does not fit, and what would."""

from collections.abc import Iterator

from rlvr_exp.run.memory.layout import GIB, Layout
from rlvr_exp.run.memory.phases import PHASES, Lines, reserve

RESERVE = "context, fragmentation"


def estimate(layout: Layout) -> dict[str, Lines]:
    """Bytes of every line of every phase that the run has; the reserve is one of them."""
    phases = PHASES if layout.trains else {name: PHASES[name] for name in ("load", "rollout")}
    lines = {name: phase(layout) for name, phase in phases.items()}
    return {name: {**found, RESERVE: reserve(found)} for name, found in lines.items()}


def table(found: dict[str, Lines], device_gib: float) -> Iterator[str]:
    """One row a line, one column a phase, in GiB; lines that are zero everywhere are left out."""
    names = dict.fromkeys(name for lines in found.values() for name, size in lines.items() if size)
    shown = sorted(names, key=lambda name: name == RESERVE)
    yield _row("GiB", list(found))
    for name in shown:
        yield _row(name, [_gib(lines.get(name, 0.0)) for lines in found.values()])
    totals = [sum(lines.values()) for lines in found.values()]
    yield _row("total", [_gib(total) for total in totals])
    yield _row(f"of {device_gib:g}", ["fits" if total <= device_gib * GIB else "TOO MUCH" for total in totals])


def _row(name: str, cells: list[str]) -> str:
    return f"{name:<24}" + "".join(f"{cell:>12}" for cell in cells)


def _gib(size: float) -> str:
    """Two decimals; what is smaller than that is told apart from nothing."""
    if not size:
        return "-"
    return f"{size / GIB:.2f}" if size >= 0.005 * GIB else f"{size / GIB:.5f}"


def too_large(found: dict[str, Lines], device_gib: float) -> tuple[str, str] | None:
    """The first phase that does not fit and its largest line."""
    for phase, lines in found.items():
        if sum(lines.values()) > device_gib * GIB:
            return phase, max(lines, key=lambda name: lines[name])
    return None
