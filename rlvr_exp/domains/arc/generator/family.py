"""A family of transformations: the grids that it is shown on, and the bodies of its programs.

A body is an expression over `g`, after optional helper lines. `short` needs no sizes. `indexed` counts over `h` and `w`,
which `corpus.render` defines from the grid or as numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Grid = list[list[int]]
Palette = tuple[int, ...]


@dataclass(frozen=True)
class Draw:
    """Parameters of a task. Colours are drawn against its palette, so that they occur in its grids."""

    rng: Random
    palette: Palette

    def number(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.rng.randint(low, high)

    def seen(self) -> int:
        """A colour of the grids, never the background 0."""
        return self.rng.choice([v for v in self.palette if v])

    def two(self) -> list[int]:
        """Two colours of the grids, in random order."""
        return self.rng.sample(self.palette, 2)

    def other(self, *than: int) -> int:
        """A non-zero colour other than the given colours, of the grids or not."""
        return self.rng.choice([v for v in range(1, 10) if v not in than])

    def new(self) -> int:
        """A non-zero colour that no grid has."""
        return self.other(*self.palette)


@dataclass(frozen=True)
class Source:
    """A kind of input grids: how a task's palette is drawn, and a grid of it."""

    palette: Callable[[Random], Palette]
    grid: Callable[[Random, int, int, Palette], Grid]
    zero: bool = True
    """Whether 0 is the background and the palette's first colour."""
    general: bool = True
    """Whether the grids are plain enough to feed any step of a composition."""


def _mixed(rng: Random) -> Palette:
    return tuple(rng.sample(range(10), rng.choice((2, 3, 3, 4, 4, 5))))


def _on_zero(rng: Random) -> Palette:
    return (0, *rng.sample(range(1, 10), rng.choice((1, 2, 2, 3))))


def _on_zero_rich(rng: Random) -> Palette:
    return (0, *rng.sample(range(1, 10), rng.choice((2, 3))))


def _dense(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    return [[rng.choice(palette) for _ in range(w)] for _ in range(h)]


def _sparse(rng: Random, h: int, w: int, palette: Palette, share: float | None = None) -> Grid:
    share = rng.uniform(0.3, 0.6) if share is None else share
    return [[rng.choice(palette[1:]) if rng.random() < share else 0 for _ in range(w)] for _ in range(h)]


def _gaps(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    """One or two rows and columns without any colour."""
    cells = _sparse(rng, h, w, palette, 0.75)
    rows = set(rng.sample(range(h), rng.randint(1, 2 if h > 3 else 1)))
    cols = set(rng.sample(range(w), rng.randint(1, 2 if w > 3 else 1)))
    return [[0 if r in rows or c in cols else cells[r][c] for c in range(w)] for r in range(h)]


def _island(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    """One dense block, at least 2 by 2, smaller than the grid."""
    a, b = rng.randint(2, h - 1), rng.randint(2, w - 1)
    top, left = rng.randint(0, h - a), rng.randint(0, w - b)
    block = _sparse(rng, a, b, palette, 0.8)
    inside = [[top <= r < top + a and left <= c < left + b for c in range(w)] for r in range(h)]
    return [[block[r - top][c - left] if inside[r][c] else 0 for c in range(w)] for r in range(h)]


def _ring(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    """The outline of a box, with at most two stray cells outside of it."""
    a, b = rng.randint(3, h), rng.randint(3, w)
    top, left, colour = rng.randint(0, h - a), rng.randint(0, w - b), rng.choice(palette[1:])
    cells = [[0] * w for _ in range(h)]
    for r in range(top, top + a):
        for c in range(left, left + b):
            cells[r][c] = colour if r in (top, top + a - 1) or c in (left, left + b - 1) else 0
    outside = [(r, c) for r in range(h) for c in range(w) if not (top <= r < top + a and left <= c < left + b)]
    for r, c in rng.sample(outside, min(len(outside), rng.randint(0, 2))):
        cells[r][c] = rng.choice(palette[1:])
    return cells


def _ranked(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    """No tie for the most common colour, nor for the rarest."""
    while True:
        cells = _dense(rng, h, w, palette)
        values = [v for row in cells for v in row]
        counts = sorted(values.count(v) for v in set(values))
        if len(counts) > 1 and counts[0] < counts[1] and counts[-2] < counts[-1]:
            return cells


def _scattered(rng: Random, h: int, w: int, palette: Palette) -> Grid:
    return _sparse(rng, h, w, palette, rng.uniform(0.12, 0.3))


DENSE = Source(_mixed, _dense, zero=False)
SPARSE = Source(_on_zero, _sparse)
SPARSE_RICH = Source(_on_zero_rich, _sparse)
GAPS = Source(_on_zero_rich, _gaps, general=False)
ISLAND = Source(_on_zero_rich, _island, general=False)
RING = Source(_on_zero_rich, _ring, general=False)
RANKED = Source(_mixed, _ranked, zero=False, general=False)
SCATTERED = Source(_on_zero, _scattered, general=False)


Fits = Callable[[int, int], bool]


@dataclass(frozen=True)
class Bodies:
    """One transformation in each style. A style that it lacks is empty."""

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
    """Limit of an input of the embedded corpus if outputs are larger; 0: none."""
    fixed: bool = False
    """Whether it has no parameters."""

    @property
    def composable(self) -> bool:
        """Whether it may be a step of a composition: plain grids, and a body in both styles."""
        bodies = self.bodies(Draw(Random(0), (0, 1, 2)))
        return self.source.general and bool(bodies.short and bodies.indexed)


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
