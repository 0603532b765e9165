"""Families: named bodies of a program, the grids it is shown on, and the registry of all families.

A body is an expression over `g`, after optional helper lines. `short` needs no sizes; `indexed` counts over `h`
and `w`, which compose.py defines, from the grid or as numbers. Nothing here draws a task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from rlvr_exp.domains.arc.generator.sampling import DENSE, Draw, Source

FAMILIES: dict[str, "GridFamily"] = {}
Fits = Callable[[int, int], bool]


@dataclass(frozen=True)
class Bodies:
    """One transformation in the styles it can be written in; a style that it lacks is empty."""

    short: str = ""
    indexed: str = ""


@dataclass(frozen=True)
class GridFamily:
    """A transformation with parameters. `bodies` draws the parameters and inlines them."""

    name: str
    bodies: Callable[[Draw], Bodies]
    source: Source = DENSE
    fits: Fits = lambda h, w: True
    """Whether an input of that height and width shows the family well."""
    most_cells: int = 0
    """Of an input of the embedded corpus, where outputs are larger; 0: any number."""
    fixed: bool = False
    """Whether it has no parameter at all."""

    @property
    def composable(self) -> bool:
        """Whether it may be a step of a composition: plain grids, and a body in both styles."""
        bodies = self.bodies(Draw(Random(0), (0, 1, 2)))
        return self.source.general and bool(bodies.short and bodies.indexed)


def register(entry: GridFamily) -> None:
    if entry.name in FAMILIES:
        raise ValueError(f"corpus family {entry.name!r} is registered twice; rename one")
    FAMILIES[entry.name] = entry


def fixed(
    name: str, short: str, indexed: str, source: Source = DENSE, fits: Fits = lambda h, w: True, most_cells: int = 0
) -> None:
    """Register a family without parameters."""
    bodies = Bodies(short, indexed)
    register(GridFamily(name, lambda draw: bodies, source, fits, most_cells, fixed=True))


def family(
    source: Source = DENSE, fits: Fits = lambda h, w: True, most_cells: int = 0
) -> Callable[[Callable[[Draw], Bodies]], None]:
    """Register a family whose function draws parameters and returns the bodies; it is named as the function."""
    return lambda bodies: register(GridFamily(bodies.__name__, bodies, source, fits, most_cells))


def cells(value: str) -> str:
    """A new value for each cell `v`."""
    return f"[[{value} for v in row] for row in g]"


def numbered(value: str) -> str:
    """A new value for each cell `v` at row `r`, column `c`, without sizes."""
    return f"[[{value} for c, v in enumerate(row)] for r, row in enumerate(g)]"


def grid(value: str, rows: str = "h", cols: str = "w") -> str:
    """A value for every index `r`, `c` below `rows`, `cols`; `range` arguments are taken as they are."""
    return f"[[{value} for c in range({cols})] for r in range({rows})]"


def columns(lines: str) -> str:
    """An expression over columns, turned back into rows."""
    return f"[list(row) for row in zip(*{lines})]"
